import java.lang.management.ManagementFactory;
import java.util.concurrent.CountDownLatch;

/**
 * Virtual threads, two for each carrier, that give way to each other: each time one is unmounted and another mounted.
 * For each line that is read on standard input: the process' processor time a pair, in ns. Usage: Yields CARRIERS, as
 * many as jdk.virtualThreadScheduler.parallelism says
 */
public class Yields {
    static final int YIELDS = 1_500_000;

    static double measure(int threads) throws InterruptedException {
        // In steps of 10 ms (times(2)); what is measured takes a second.
        var system = (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        CountDownLatch left = new CountDownLatch(threads);
        long begin = system.getProcessCpuTime();
        for (int i = 0; i < threads; i++) {
            Thread.startVirtualThread(() -> {
                for (int n = 0; n < YIELDS; n++) {
                    Thread.yield();
                }
                left.countDown();
            });
        }
        left.await();
        return (double) (system.getProcessCpuTime() - begin) / YIELDS / threads;
    }

    public static void main(String[] args) throws Exception {
        int threads = 2 * Integer.parseInt(args[0]);
        for (int i = 0; i < 4; i++) {
            measure(threads);
        }
        System.out.println("warm");
        while (System.in.read() >= 0) {
            System.out.printf("%.1f%n", measure(threads));
        }
    }
}
