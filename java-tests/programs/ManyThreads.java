import java.util.concurrent.CountDownLatch;

/** So many threads at once, "worker-00000" and so on, that live until a line is read. */
public class ManyThreads {
    public static void main(String[] arguments) throws Exception {
        int count = Integer.parseInt(arguments[0]);
        CountDownLatch started = new CountDownLatch(count);
        CountDownLatch end = new CountDownLatch(1);
        for (int i = 0; i < count; i++) {
            Thread thread = new Thread(null, () -> {
                started.countDown();
                try {
                    end.await();
                } catch (InterruptedException e) {
                    throw new IllegalStateException(e);
                }
            }, String.format("worker-%05d", i), 144 * 1024);
            thread.start();
        }
        started.await();
        System.out.println("ready");
        System.in.read();
        end.countDown();
    }
}
