import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;

/**
 * Has so many seconds of processor time, and says at its end how much it was: in two threads that live as long as it
 * does ("long"), or one after the other in threads that live for 5 ms of work, 2 ms of the main thread's between them
 * ("short"). Says "ready" when its threads are there.
 */
public class Timed {
    static volatile long result;

    static void work(double seconds) {
        long until = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() + (long) (seconds * 1e9);
        long x = 1;
        while (ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() < until) {
            for (int i = 0; i < 2000; i++) {
                x = x * 31 + i;
            }
        }
        result = x;
    }

    public static void main(String[] args) throws Exception {
        double seconds = Double.parseDouble(args[1]);
        if (args[0].equals("short")) {
            System.out.println("ready");
            for (int i = 0; i < seconds / 0.007; i++) {
                Thread thread = new Thread(() -> work(0.005));
                thread.start();
                thread.join();
                work(0.002);
            }
        } else {
            Thread[] threads = new Thread[2];
            for (int i = 0; i < threads.length; i++) {
                threads[i] = new Thread(() -> work(seconds / threads.length));
                threads[i].start();
            }
            System.out.println("ready");
            for (Thread thread : threads) {
                thread.join();
            }
        }
        System.out.println(((OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime());
    }
}
