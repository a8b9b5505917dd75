import java.io.FileInputStream;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.io.UncheckedIOException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;

/**
 * Virtual threads that park along a chain of calls and at its end, and work when they go on, so that their callers are
 * frozen, in one chunk or in several: `Frozen SECONDS CALLS [PIPE]`. The JVM's own trace of the chain goes to standard
 * output. With a named pipe they allocate, want a monitor that another thread has, and read a byte from that pipe, for
 * which they keep their carrier. JDK 21 and later.
 */
public final class Frozen {
    interface Step {
        long go(int left, long x);
    }

    static volatile long sink;
    static final AtomicBoolean told = new AtomicBoolean();
    static volatile byte[] garbage;
    static Step first, second;
    static FileInputStream pipe; // null: none
    static final Object monitor = new Object();

    public static void main(String[] args) throws Exception {
        long end = System.nanoTime() + Long.parseLong(args[0]) * 1_000_000_000L;
        int calls = Integer.parseInt(args[1]);
        int count = 8;
        if (args.length > 2) {
            RandomAccessFile bytes = new RandomAccessFile(args[2], "rw");
            pipe = new FileInputStream(args[2]);
            // It wants no monitor: who has it may wait for a carrier, and all of these for bytes.
            Thread writer = new Thread(() -> write(bytes));
            writer.setDaemon(true);
            writer.start();
        }
        // Each calls the other by an interface, so that a chain is not inlined into one frame.
        first = (left, x) -> left == 0 ? burn(x) : second.go(left - 1, x + left) + 1;
        second = (left, x) -> {
            if (left % 16 == 1) {
                LockSupport.parkNanos(1000);
            }
            return left == 0 ? burn(x) : first.go(left - 1, x ^ left) + 1;
        };
        CountDownLatch over = new CountDownLatch(count);
        for (int i = 0; i < count; i++) {
            Thread.ofVirtual().start(() -> {
                while (System.nanoTime() < end) {
                    sink += first.go(calls, end);
                }
                over.countDown();
            });
        }
        while (!over.await(1, TimeUnit.MILLISECONDS)) {
            garbage = new byte[1 << 18]; // collections, which move what is frozen
            if (pipe != null) {
                synchronized (monitor) {
                    Thread.sleep(1);
                }
            }
        }
    }

    static long burn(long x) {
        long sum = x;
        if (!told.get() && told.compareAndSet(false, true)) {
            new Throwable().printStackTrace(System.out);
        }
        for (int i = 0; i < 20; i++) {
            LockSupport.parkNanos(1000);
            if (pipe != null) {
                garbage = new byte[4096];
                sum += read();
                synchronized (monitor) {
                    sum++;
                }
            }
            for (int k = 0; k < 200_000; k++) {
                sum += sum * k ^ x;
            }
        }
        return sum;
    }

    static int read() {
        try {
            return pipe.read();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** A byte at a time, so that who reads mostly waits. */
    static void write(RandomAccessFile bytes) {
        try {
            for (;;) {
                bytes.write(0);
                Thread.sleep(3);
            }
        } catch (IOException | InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}
