import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.locks.LockSupport;

/**
 * A program of known events, for a number of seconds: "Events SECONDS alloc locks virtual-locks exceptions flood waits busy
 * virtual time", any of the words. It prints what really was: bytes by class, nanoseconds waited by thread, how many
 * exceptions, nanoseconds that threads which never sleep have waited for a processor, the processors' time.
 */
public class Events {
    static volatile Object sink;
    static volatile boolean done;
    static final List<Thread> threads = new ArrayList<>();
    static final List<String> truth = new ArrayList<>();

    static final class Small { long a, b; } // 32 bytes with a header of 12 or 16, 24 with one of 8

    static synchronized void tell(String line) {
        truth.add(line);
    }

    static void start(String name, Runnable body) {
        Thread thread = new Thread(body, name);
        threads.add(thread);
        thread.start();
    }

    static void startVirtual(String name, Runnable body) throws ReflectiveOperationException {
        Object builder;
        try {
            builder = Thread.class.getMethod("ofVirtual").invoke(null);
        } catch (NoSuchMethodException e) {
            return;
        }
        Class<?> type = Class.forName("java.lang.Thread$Builder");
        type.getMethod("name", String.class).invoke(builder, name);
        threads.add((Thread) type.getMethod("start", Runnable.class).invoke(builder, body));
    }

    // ---- Allocations: known sizes of three classes, in known numbers.

    static void allocate() {
        long bytes = 0, ints = 0, smalls = 0;
        while (!done) {
            for (int i = 0; i < 1000; i++) {
                sink = makeBytes();
                sink = makeInts();
                for (int k = 0; k < 4; k++) sink = new Small();
            }
            bytes += 1000;
            ints += 1000;
            smalls += 4000;
            pause(1);
        }
        tell("alloc byte[] " + bytes);
        tell("alloc int[] " + ints);
        tell("alloc Events$Small " + smalls);
    }

    static byte[] makeBytes() { return new byte[1008]; } // 1024 with a header of 16
    static int[] makeInts() { return new int[124]; }     // 512

    // ---- Contended monitors: one holds it, others wait for it.

    static final Object monitor = new Object() { @Override public String toString() { return "lock"; } };
    static long waited;

    /** A virtual thread lets others have its carrier, also while it holds the monitor. */
    static void pass(boolean isVirtual, int milliseconds, long nanoseconds) {
        if (isVirtual) {
            pause(milliseconds);
        } else {
            spin(nanoseconds);
        }
    }

    static void hold(boolean isVirtual) {
        while (!done) {
            synchronized (monitor) {
                pass(isVirtual, 4, 4_000_000);
            }
            pause(1);
        }
    }

    static void contend(boolean isVirtual) {
        long sum = 0;
        while (!done) {
            long from = System.nanoTime();
            synchronized (monitor) {
                sum += System.nanoTime() - from;
            }
            pass(isVirtual, 1, 200_000);
        }
        tell("lock " + Thread.currentThread().getName() + " " + sum);
    }

    static void deep(int depth, Runnable body) {
        if (depth == 0) {
            body.run();
        } else {
            deep(depth - 1, body);
        }
    }

    // ---- Exceptions.

    static final class OwnException extends RuntimeException {
        OwnException(String text) { super(text); }
    }

    static void thrower() {
        long own = 0, state = 0;
        while (!done) {
            try { throwOwn(); } catch (OwnException e) { own++; }
            if (own % 3 == 0) {
                try { throwState(); } catch (IllegalStateException e) { state++; }
            }
            pause(1);
        }
        tell("exception Events$OwnException " + own);
        tell("exception java.lang.IllegalStateException " + state);
    }

    static final class FloodException extends RuntimeException { }
    static final class FourthException extends RuntimeException { }

    /** As many as it can, of which every fifth is of another class. */
    static void flooder() {
        long flood = 0, fourth = 0;
        while (!done) {
            try { throwFlood(); } catch (FloodException e) { flood++; }
            if (flood % 4 == 0) {
                try { throwFourth(); } catch (FourthException e) { fourth++; }
            }
        }
        tell("exception Events$FloodException " + flood);
        tell("exception Events$FourthException " + fourth);
    }

    static void throwFlood() { throw new FloodException(); }
    static void throwFourth() { throw new FourthException(); }
    static void throwOwn() { throw new OwnException("own"); }
    static void throwState() { throw new IllegalStateException("state"); }

    // ---- Waits, each on a line of its own.

    static void tellWait(long sum) {
        tell("wait " + Thread.currentThread().getName() + " " + sum);
    }

    static void sleeper() {
        long sum = 0;
        while (!done) {
            long from = System.nanoTime();
            pause(50); // SLEEP
            sum += System.nanoTime() - from;
            spin(1_000_000);
        }
        tellWait(sum);
    }

    // ---- More threads than processors.

    /** Nothing in it is linked or initialised at its first use, for which threads would wait for one another. */
    static void spinner() {
        while (!done) { }
        tell(String.join(" ", "runnable", Thread.currentThread().getName(), Long.toString(queued())));
    }

    /**
     * How long this thread has waited for a processor, by the kernel's word. By clocks it would be more: what
     * interrupts and the machine under this one take is no wait for a processor, and no switch tells of it.
     */
    static long queued() {
        try {
            return Long.parseLong(new String(Files.readAllBytes(Paths.get("/proc/thread-self/schedstat"))).split(" ")[1]);
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }

    static void parker() {
        long sum = 0;
        while (!done) {
            long from = System.nanoTime();
            LockSupport.parkNanos(40_000_000); // PARK
            sum += System.nanoTime() - from;
            spin(1_000_000);
        }
        tellWait(sum);
    }

    static final Object condition = new Object();

    static void waiter() {
        long sum = 0;
        while (!done) {
            synchronized (condition) {
                long from = System.nanoTime();
                try {
                    condition.wait(60); // WAIT
                } catch (InterruptedException e) {
                    return;
                }
                sum += System.nanoTime() - from;
            }
            spin(1_000_000);
        }
        tellWait(sum);
    }

    static final Object held = new Object();

    static void holder() {
        while (!done) {
            synchronized (held) {
                pause(30);
            }
            pause(5);
        }
    }

    static void blocked() {
        long sum = 0;
        while (!done) {
            long from = System.nanoTime();
            synchronized (held) { sum += System.nanoTime() - from; } // ENTER
            pause(2);
        }
        tellWait(sum);
    }

    static void pause(long milliseconds) {
        try {
            Thread.sleep(milliseconds);
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    static void spin(long nanoseconds) {
        long until = System.nanoTime() + nanoseconds;
        while (System.nanoTime() < until) { }
    }

    /** By the kernel's word, in ticks of 10 ms: user and system time, the 14th and 15th field. */
    static long processTime() throws IOException {
        String stat = new String(Files.readAllBytes(Paths.get("/proc/self/stat")));
        String[] fields = stat.substring(stat.lastIndexOf(')') + 2).split(" ");
        return (Long.parseLong(fields[11]) + Long.parseLong(fields[12])) * 10_000_000;
    }

    public static void main(String[] args) throws Exception {
        for (int i = 1; i < args.length; i++) {
            switch (args[i]) {
            case "alloc": start("allocator", Events::allocate); break;
            case "locks":
                start("holder", () -> hold(false));
                start("contender-1", () -> contend(false));
                start("contender-2", () -> contend(false));
                break;
            case "virtual-locks":
                startVirtual("virtual-holder", () -> hold(true));
                startVirtual("virtual-contender-1", () -> deep(30, () -> contend(true)));
                startVirtual("virtual-contender-2", () -> deep(30, () -> contend(true)));
                break;
            case "exceptions": start("thrower", Events::thrower); break;
            case "flood": start("flooder", Events::flooder); break;
            case "waits":
                start("sleeper", Events::sleeper);
                start("parker", Events::parker);
                start("waiter", Events::waiter);
                start("holder", Events::holder);
                start("blocked", Events::blocked);
                break;
            case "busy":
                queued();
                for (int k = 0; k < Runtime.getRuntime().availableProcessors() + 2; k++) {
                    start("spinner-" + k, Events::spinner);
                }
                break;
            case "virtual": // the same, where the JDK has them; by reflection, for this compiles with all
                startVirtual("virtual-sleeper", Events::sleeper);
                startVirtual("virtual-parker", Events::parker);
                startVirtual("virtual-waiter", Events::waiter);
                startVirtual("virtual-blocked", Events::blocked);
                startVirtual("virtual-yielder", () -> {
                    while (!done) {
                        Thread.yield();
                        pause(5);
                    }
                });
                break;
            case "time": break;
            default: throw new IllegalArgumentException(args[i]);
            }
        }
        Thread.sleep((long) (Double.parseDouble(args[0]) * 1000));
        done = true;
        for (Thread thread : threads) thread.join();
        for (String line : truth) System.out.println(line);
        if (Arrays.asList(args).contains("time")) System.out.println("time process " + processTime());
    }
}
