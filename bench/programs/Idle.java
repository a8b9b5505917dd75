/**
 * Nearly idle, as most services are: works a little ten times a second, in as many threads as asked for, of which one
 * works at a time.
 */
public class Idle {
    static volatile long sum;

    static void work() {
        for (int i = 0; i < 20_000; i++) {
            sum += Long.hashCode(sum * 31 + i);
        }
    }

    public static void main(String[] args) throws InterruptedException {
        int threads = Integer.parseInt(args[0]);
        for (int i = 1; i < threads; i++) {
            Thread thread = new Thread(() -> {
                try {
                    Thread.sleep(Long.MAX_VALUE);
                } catch (InterruptedException e) {
                    // the end
                }
            });
            thread.setDaemon(true);
            thread.start();
        }
        System.out.println("idle");
        for (;;) {
            work();
            Thread.sleep(100);
        }
    }
}
