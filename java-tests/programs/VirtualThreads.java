import java.util.concurrent.CountDownLatch;

/** Virtual threads that park deep in their stacks, go on, and work: JDK 21 and later. */
public final class VirtualThreads {
    static volatile long sink;

    public static void main(String[] args) throws Exception {
        long end = System.nanoTime() + Long.parseLong(args[0]) * 1_000_000_000L;
        int count = 40;
        CountDownLatch left = new CountDownLatch(count);
        for (int i = 0; i < count; i++) {
            Thread.ofVirtual().start(() -> {
                try {
                    while (System.nanoTime() < end) {
                        for (int k = 0; k < 20; k++) {
                            sink += work(20, k);
                        }
                        park(5);
                    }
                } catch (InterruptedException e) {
                    throw new IllegalStateException(e);
                } finally {
                    left.countDown();
                }
            });
        }
        left.await();
    }

    private static long work(int depth, long x) {
        if (depth == 0) {
            long sum = x;
            for (int i = 0; i < 3000; i++) {
                sum += sum * i ^ x;
            }
            return sum;
        }
        return work(depth - 1, x + depth) * 31 + depth;
    }

    private static void park(int depth) throws InterruptedException {
        if (depth == 0) {
            Thread.sleep(1);
            return;
        }
        park(depth - 1);
        sink += work(5, depth);
    }
}
