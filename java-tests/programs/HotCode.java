/**
 * A few hot methods that stay apart, and garbage collections, so that a JVM with a hot code heap (JDK 27)
 * moves their code there. Usage: HotCode SECONDS
 */
public final class HotCode {
    static volatile long sink;

    static long first(long x) {
        long sum = x;
        for (int i = 0; i < 500; i++) {
            sum = sum * 31 + i;
        }
        return sum;
    }

    static long second(long x) {
        long sum = x;
        for (int i = 0; i < 500; i++) {
            sum ^= sum << 3 ^ i;
        }
        return sum;
    }

    static long third(long x) {
        return first(x) + second(x);
    }

    public static void main(String[] args) throws InterruptedException {
        long until = System.nanoTime() + Long.parseLong(args[0]) * 1_000_000_000L;
        Thread collector = new Thread(() -> {
            while (System.nanoTime() < until) {
                System.gc();
                try {
                    Thread.sleep(500);
                } catch (InterruptedException e) {
                    return;
                }
            }
        });
        collector.start();
        while (System.nanoTime() < until) {
            sink = round(sink);
        }
        collector.join();
        System.out.println(sink);
    }

    static long round(long x) {
        long sum = x;
        for (int i = 0; i < 100; i++) {
            sum += third(sum + i);
        }
        return sum;
    }
}
