import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Semaphore;

/**
 * Threads that live for some milliseconds, in a program that says how long its work took of a processor.
 *
 * "ShortThreads beside [ROUNDS]": the main thread starts one that works 5 ms, waits for it, and works 2 ms
 * itself; so often, from a line on standard input on, or until that ends.
 *
 * "ShortThreads churn": 500 threads wait for their turn, which a line on standard input begins. Each works 1 ms and ends,
 * and so does a new one behind it; the main thread works between them, and for 1 s when all have ended.
 *
 * Prints "ready" when it is, and at the end "truth main|thread NANOSECONDS".
 */
public class ShortThreads {
    static final ThreadMXBean clock = ManagementFactory.getThreadMXBean();
    static volatile boolean done;
    static volatile long sink;
    static long mainTime, threadTime;

    static long mix(long x) {
        for (int i = 0; i < 20_000; i++) {
            x = x * 31 + i;
            x ^= x >>> 7;
        }
        return x;
    }

    /** Works for so long of the thread's own processor time. */
    static long work(long nanoseconds) {
        long from = clock.getCurrentThreadCpuTime(), now = from;
        while (now - from < nanoseconds) {
            sink += mix(now);
            now = clock.getCurrentThreadCpuTime();
        }
        return now - from;
    }

    static void inMain() {
        mainTime += work(2_000_000);
    }

    static synchronized void took(long time) {
        threadTime += time;
    }

    static void inThread(long nanoseconds) {
        took(work(nanoseconds));
    }

    static Thread started(String name, Runnable body) {
        Thread thread = new Thread(body, name);
        thread.start();
        return thread;
    }

    static void beside(int rounds) throws InterruptedException {
        for (int i = 0; rounds > 0 ? i < rounds : !done; i++) {
            started("short", () -> inThread(5_000_000)).join();
            inMain();
        }
    }

    static void churn() throws InterruptedException {
        Semaphore turns = new Semaphore(0);
        List<Thread> waiting = new ArrayList<>();
        for (int i = 0; i < 500; i++) {
            waiting.add(started("waiting-" + i, () -> {
                turns.acquireUninterruptibly();
                inThread(1_000_000);
            }));
        }
        System.out.println("ready");
        begun.acquire();
        for (int i = 0; i < waiting.size(); i++) {
            turns.release();
            started("short-" + i, () -> inThread(1_000_000)).join();
        }
        for (Thread thread : waiting) {
            thread.join();
        }
        for (int i = 0; i < 500; i++) {
            inMain();
        }
    }

    static final Semaphore begun = new Semaphore(0);

    static void untilInputEnds() {
        try {
            System.in.read();
            begun.release();
            while (System.in.read() >= 0) { }
        } catch (IOException e) {
            System.err.println(e);
        }
        begun.release();
        done = true;
    }

    public static void main(String[] args) throws InterruptedException {
        Thread watcher = new Thread(ShortThreads::untilInputEnds, "watcher");
        watcher.setDaemon(true);
        watcher.start();
        for (int i = 0; i < 400; i++) { // compiled by then
            sink += work(500_000);
        }
        if (args[0].equals("churn")) {
            churn();
        } else {
            System.out.println("ready");
            if (args.length > 1) {
                begun.acquire();
            }
            beside(args.length > 1 ? Integer.parseInt(args[1]) : 0);
        }
        System.out.println("truth main " + mainTime);
        System.out.println("truth thread " + threadTime);
    }
}
