import io.jdagent.Labels;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/**
 * Fifty threads, half of them virtual where the JDK has them, that set a label by chance and burn in
 * the method of that label, so that samples tell by their frames which it was. Prints what setting a
 * label costs, "cost NANOSECONDS", first and last.
 */
public final class Labelled {
    static volatile long sink;
    static final int THREADS = 50;
    static final int KINDS = 4;
    static final Labels[] LABELS = new Labels[KINDS];

    interface Burner {
        long burn(int rounds);
    }

    private static final Burner[] BURNERS = {
        Labelled::burn0, Labelled::burn1, Labelled::burn2, Labelled::burn3,
    };

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < KINDS; i++) {
            LABELS[i] = Labels.of("kind", "burn" + i, "customer", "number " + i);
        }
        System.out.println("cost\t" + cost());
        long end = System.nanoTime() + (long) (Double.parseDouble(args[0]) * 1e9);
        Method virtual = null;
        try {
            virtual = Thread.class.getMethod("startVirtualThread", Runnable.class);
        } catch (NoSuchMethodException e) {
            // an earlier JDK
        }
        CountDownLatch left = new CountDownLatch(THREADS);
        for (int i = 0; i < THREADS; i++) {
            int seed = i;
            Runnable work = () -> {
                work(seed, end);
                left.countDown();
            };
            if (virtual != null && i % 2 == 0) {
                virtual.invoke(null, work);
            } else {
                new Thread(work, "worker").start();
            }
        }
        while (!left.await(100, TimeUnit.MILLISECONDS)) {
            missLate();
        }
        System.out.println("cost\t" + cost());
    }

    /** What a thread does that looked for the agent's function in vain, and got no processor since. */
    private static void missLate() throws Exception {
        Field missed = Labels.class.getDeclaredField("missed");
        missed.setAccessible(true);
        missed.setLong(null, System.nanoTime());
    }

    /** Nanoseconds of one call; the least of many rounds, for the machine has others to serve. */
    private static double cost() {
        double least = 1e9;
        for (int round = 0; round < 50; round++) {
            long begin = System.nanoTime();
            for (int i = 0; i < 100_000; i++) {
                Labels.set(LABELS[i & 3]);
            }
            least = Math.min(least, (System.nanoTime() - begin) / 100_000.0);
        }
        Labels.set(null);
        return least;
    }

    private static void work(int seed, long end) {
        long chance = seed;
        while (System.nanoTime() < end) {
            chance = chance * 6364136223846793005L + 1442695040888963407L;
            int kind = (int) (chance >>> 33) % KINDS;
            Labels.set(LABELS[kind]);
            sink += BURNERS[kind].burn(20_000);
            if ((chance >>> 40) % 4 == 0) {
                Thread.yield(); // a virtual one goes on elsewhere, and has its label still
                sink += BURNERS[kind].burn(5_000);
            }
        }
    }

    private static long burn0(int n) { long x = n; for (int i = 0; i < n; i++) { x = x * 31 + (x ^ i); } return x; }
    private static long burn1(int n) { long x = n; for (int i = 0; i < n; i++) { x = x * 37 + (x ^ i); } return x; }
    private static long burn2(int n) { long x = n; for (int i = 0; i < n; i++) { x = x * 41 + (x ^ i); } return x; }
    private static long burn3(int n) { long x = n; for (int i = 0; i < n; i++) { x = x * 43 + (x ^ i); } return x; }
}
