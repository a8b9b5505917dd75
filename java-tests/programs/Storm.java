import java.util.concurrent.atomic.AtomicLong;

/**
 * A storm of deoptimisations: calls that are compiled for the one class that is loaded, in recursions of 30, while
 * another thread loads further classes of the hierarchy, which makes that code wrong under them, and lets them go, so that
 * it is compiled for one class again. Some fields change what they hold, which fails in compiled code itself.
 *
 * Usage: Storm SECONDS
 */
public class Storm {
    /** What is loaded again and again. */
    public abstract static class Step {
        abstract long go(Step next, int depth, long x);

        long mix(long x) {
            return x * 31 + 7;
        }
    }

    static class First extends Step {
        @Override
        long go(Step next, int depth, long x) {
            long sum = mix(x);
            if (depth > 0) {
                sum += next.go(this, depth - 1, sum) + rare(depth, sum);
            }
            return sum ^ depth;
        }

        /** Compiled for numbers, then met by texts. */
        private long rare(int depth, long x) {
            return kind instanceof Integer ? (Integer) kind + x : kind.hashCode() + depth;
        }
    }

    static volatile Object kind = 1;
    static volatile Step last;
    static final AtomicLong sink = new AtomicLong();

    public static void main(String[] args) throws Exception {
        long end = System.nanoTime() + Long.parseLong(args[0]) * 1_000_000_000L;
        Thread[] threads = new Thread[2];
        for (int i = 0; i < threads.length; i++) {
            threads[i] = new Thread(() -> burn(end), "burner-" + i);
            threads[i].start();
        }
        Copies copies = new Copies("Storm");
        for (int i = 0; System.nanoTime() < end; i++) {
            Step step = (Step) copies.constructor(i % 1_000_000).newInstance();
            last = step;
            kind = i % 3 == 0 ? (Object) ("a" + i) : (Object) i;
            sink.addAndGet(step.mix(i));
            Thread.sleep(i % 8 == 7 ? 40 : 5);
            if (i % 16 == 15) {
                last = null;
                System.gc(); // what was loaded goes, and there is one class again
            }
        }
        for (Thread thread : threads) {
            thread.join();
        }
        System.out.println("sum " + sink.get());
    }

    static void burn(long end) {
        Step one = new First();
        Step two = new First();
        long sum = 0;
        for (int i = 0; System.nanoTime() < end; i++) {
            Step other = (i & 1023) == 0 ? last : null;
            sum += one.go(other == null ? two : other, 30, i);
        }
        sink.addAndGet(sum);
    }
}

class Storm_xxxxxx extends Storm.Step {
    @Override
    long go(Storm.Step next, int depth, long x) {
        return depth > 0 ? next.go(this, depth - 1, mix(x)) : x;
    }

    @Override
    long mix(long x) {
        return x * 17 + 3;
    }
}
