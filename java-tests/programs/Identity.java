import java.lang.reflect.Method;
import java.util.concurrent.CountDownLatch;

/**
 * Threads whose samples tell by their frames whose they are: each burns in a method of its own.
 * Prints "virtual ID NAME METHOD" and "platform ID NAME METHOD" of them, and how often they were
 * scheduled. Virtual ones where the JDK has them; by reflection, for this compiles with all.
 */
public final class Identity {
    static volatile long sink;
    static final int VIRTUAL = 6;
    static final int PLATFORM = 2;
    static final long[] yields = new long[VIRTUAL];

    public static void main(String[] args) throws Exception {
        long end = System.nanoTime() + Long.parseLong(args[0]) * 1_000_000_000L;
        CountDownLatch left = new CountDownLatch(VIRTUAL + PLATFORM);
        Object builder = virtualBuilder();
        for (int i = 0; builder != null && i < VIRTUAL; i++) {
            int number = i;
            Burner burner = BURNERS[i];
            Runnable work = () -> {
                while (System.nanoTime() < end) {
                    sink += burner.burn(2000);
                    yields[number]++;
                    Thread.yield();
                }
                left.countDown();
            };
            Class<?> type = Class.forName("java.lang.Thread$Builder");
            if (i > 0) { // the first one has no name
                type.getMethod("name", String.class).invoke(builder, "request handler of customer number " + i);
            }
            Thread thread = (Thread) type.getMethod("start", Runnable.class).invoke(builder, work);
            System.out.println("virtual\t" + thread.getId() + "\t" + thread.getName() + "\tburn" + i);
        }
        for (int i = 0; i < PLATFORM; i++) {
            int number = VIRTUAL + i;
            Burner burner = BURNERS[number];
            Thread thread = new Thread(() -> {
                long renamed = System.nanoTime() + (end - System.nanoTime()) / 2;
                while (System.nanoTime() < end) {
                    sink += burner.burn(200_000);
                    if (number == VIRTUAL + 1 && System.nanoTime() > renamed) {
                        Thread.currentThread().setName("renamed to something longer than the kernel keeps");
                        renamed = Long.MAX_VALUE;
                    }
                }
                left.countDown();
            }, "a platform thread with a long name, number " + i);
            thread.start();
            System.out.println("platform\t" + thread.getId() + "\t" + thread.getName() + "\tburn" + number);
        }
        if (builder == null) {
            for (int i = 0; i < VIRTUAL; i++) {
                left.countDown();
            }
        }
        left.await();
        long all = 0;
        for (long count : yields) {
            all += count;
        }
        System.out.println("yields\t" + all);
    }

    /** Thread.ofVirtual(), or null. */
    private static Object virtualBuilder() {
        try {
            Method make = Thread.class.getMethod("ofVirtual");
            return make.invoke(null);
        } catch (ReflectiveOperationException e) {
            return null;
        }
    }

    /** Not one method that calls the others: inlined into it, they would share its last instructions. */
    interface Burner {
        long burn(int rounds);
    }

    private static final Burner[] BURNERS = {
        Identity::burn0, Identity::burn1, Identity::burn2, Identity::burn3,
        Identity::burn4, Identity::burn5, Identity::burn6, Identity::burn7,
    };

    private static long burn0(int n) { long x = n; for (int i = 0; i < n; i++) { x = x * 31 + (x ^ i); } return x; }
    private static long burn1(int n) { long x = n; for (int i = 0; i < n; i++) { x = x * 37 + (x ^ i); } return x; }
    private static long burn2(int n) { long x = n; for (int i = 0; i < n; i++) { x = x * 41 + (x ^ i); } return x; }
    private static long burn3(int n) { long x = n; for (int i = 0; i < n; i++) { x = x * 43 + (x ^ i); } return x; }
    private static long burn4(int n) { long x = n; for (int i = 0; i < n; i++) { x = x * 47 + (x ^ i); } return x; }
    private static long burn5(int n) { long x = n; for (int i = 0; i < n; i++) { x = x * 53 + (x ^ i); } return x; }
    private static long burn6(int n) { long x = n; for (int i = 0; i < n; i++) { x = x * 59 + (x ^ i); } return x; }
    private static long burn7(int n) { long x = n; for (int i = 0; i < n; i++) { x = x * 61 + (x ^ i); } return x; }
}
