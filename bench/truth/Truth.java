import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.FileInputStream;
import java.io.IOException;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Programs that know where their processor time went, to hold profiles against: Truth MODE SECONDS. Each
 * mode has a few kinds of work, in methods of their own; the program measures the processor time of
 * each piece of work, of milliseconds, on the thread's own clock and prints the sums at the end:
 *
 *     truth KIND NANOSECONDS
 *     process USER_NANOSECONDS KERNEL_NANOSECONDS
 *
 * A right profile has the kinds' methods on its stacks in these shares.
 */
public final class Truth {
    public static volatile long sink; // what made classes count, too
    static int scale = 1;
    static final Map<String, long[]> truth = new TreeMap<>();

    /** The calling thread's processor time in ns; of a virtual thread its carrier's. */
    static native long cpu();

    /** Works in native code. */
    static native long nativeMix(long x, int rounds);

    static native long nativeSort(long x, int rounds);

    static void took(String kind, long nanoseconds) {
        synchronized (truth) {
            truth.computeIfAbsent(kind, k -> new long[1])[0] += nanoseconds;
        }
    }

    static void timed(String kind, Runnable work) {
        long start = cpu();
        work.run();
        took(kind, cpu() - start);
    }

    /** About a millisecond a round, compiled. */
    static long mix(long x, int rounds) {
        for (int i = 0; i < rounds * 500_000 * scale; i++) {
            x = x * 31 + i;
            x ^= x >>> 7;
        }
        return x;
    }

    // ---- compiled: methods that are compiled, and called in turn ----

    static void compiledA() {
        sink += mix(sink, 2);
    }

    static void compiledB() {
        sink += mix(sink, 4);
    }

    static void compiledC() {
        sink += mix(sink, 8);
    }

    // ---- lines: one method, whose lines take different times; what they call is inlined ----

    static long multiply(long x, int rounds) {
        for (int i = 0; i < rounds * 500_000 * scale; i++) {
            x = x * 31 + i;
        }
        return x;
    }

    static long shift(long x, int rounds) {
        for (int i = 0; i < rounds * 500_000 * scale; i++) {
            x ^= x >>> 7;
            x += i;
        }
        return x;
    }

    /** Which line runs is known to the caller: line 1 of the method is that of the first case. */
    static long hotLines(int which, long x) {
        if (which == 0) {
            x += multiply(x, 3); // LINE lineA
        } else if (which == 1) {
            x += shift(x, 3); // LINE lineB
        } else if (which == 2) {
            x += multiply(x, 9); // LINE lineC
        } else {
            x += shift(x, 9); // LINE lineD
        }
        return x;
    }

    // ---- deep: chains of calls of known depth; the root says which ----

    static long down(int depth, int rounds) {
        return depth == 0 ? mix(sink, rounds) : down(depth - 1, rounds) + 1;
    }

    static void deep30() {
        sink += down(30, 4);
    }

    static void deep100() {
        sink += down(100, 4);
    }

    static void deep300() {
        sink += down(300, 4);
    }

    static void deep1000() {
        sink += down(1000, 4);
    }

    static void deep3000() {
        sink += down(3000, 4);
    }

    // ---- interpreted: what the JVM is told not to compile ----

    static void interpretedA() {
        sink += slowly(sink, 100);
    }

    static void interpretedB() {
        sink += slowly(sink, 300);
    }

    static long slowly(long x, int rounds) {
        for (int i = 0; i < rounds * 1000 * scale; i++) {
            x = x * 31 + i;
        }
        return x;
    }

    // ---- jni: native code, called from Java ----

    static void throughMix() {
        sink += nativeMix(sink, 4 * scale);
    }

    static void throughSort() {
        sink += nativeSort(sink, 8 * scale);
    }

    // ---- kernel: system calls beside Java ----

    static void kernelZero() {
        try (FileInputStream in = new FileInputStream("/dev/zero")) {
            byte[] room = new byte[scale << 20];
            for (int i = 0; i < 40 * scale; i++) {
                sink += in.read(room);
            }
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }

    static void kernelRandom() {
        try (FileInputStream in = new FileInputStream("/dev/urandom")) {
            byte[] room = new byte[scale << 18];
            for (int i = 0; i < 4 * scale; i++) {
                sink += in.read(room);
            }
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }

    static void kernelNone() {
        sink += mix(sink, 4);
    }

    // ---- gc: threads of the JVM's own; what they took the kernel says ----

    static Object[] kept = new Object[1 << 16];

    static void allocate() {
        for (int i = 0; i < 20000; i++) {
            kept[(int) (sink++ * 7919 & 0xffff)] = new byte[200 + i % 64];
        }
    }

    /** Of all threads by name: the time that the scheduler gave them. */
    static void threadsTook() throws IOException {
        try (var tasks = Files.list(Path.of("/proc/self/task"))) {
            for (Path task : tasks.toList()) {
                String name = Files.readString(task.resolve("comm"));
                String nanoseconds = Files.readString(task.resolve("schedstat")).split(" ")[0];
                String kind = name.startsWith("GC Thread") ? "gcThreads"
                        : name.startsWith("C1 Comp") || name.startsWith("C2 Comp") ? "compilerThreads"
                        : name.startsWith("main") || name.startsWith("java") ? "javaThreads" : "otherThreads";
                took(kind, Long.parseLong(nanoseconds));
            }
        }
    }

    // ---- virtual: virtual threads, many at a time, that yield between pieces of work ----

    static void virtualA() {
        sink += mix(sink, 2);
    }

    static void virtualB() {
        sink += mix(sink, 6);
    }

    /** Runs 40 tasks at a time on virtual threads of their own, those of the two kinds in turn. */
    static void virtually(long end, Runnable first, Runnable second) throws Exception {
        warm(List.of(first, second));
        Method start = Thread.class.getMethod("startVirtualThread", Runnable.class);
        while (System.nanoTime() < end) {
            List<Thread> threads = new ArrayList<>();
            for (int i = 0; i < 40; i++) {
                threads.add((Thread) start.invoke(null, i % 2 == 0 ? first : second));
            }
            for (Thread thread : threads) {
                thread.join();
            }
        }
    }

    static void yielding(String kind, Runnable work) {
        timed(kind, work);
        for (int n = 0; n < 4 * scale; n++) {
            Thread.yield();
            timed(kind, work);
        }
    }

    // ---- parked: virtual threads that yield at the end of 200 calls, which HotSpot then keeps in the heap ----

    static void parkedA(int depth) {
        if (depth == 0) {
            yielding("parkedA", Truth::virtualA);
        } else {
            parkedA(depth - 1);
        }
    }

    static void parkedB(int depth) {
        if (depth == 0) {
            yielding("parkedB", Truth::virtualB);
        } else {
            parkedB(depth - 1);
        }
    }

    // ---- short: threads that live for 5 ms of work, one after the other, 2 ms of the main thread's between them ----

    static void during(String kind, long nanoseconds) {
        long start = cpu();
        long until = start + nanoseconds;
        while (cpu() < until) {
            sink = multiplied(sink);
        }
        took(kind, cpu() - start);
    }

    static long multiplied(long x) {
        for (int i = 0; i < 2000; i++) {
            x = x * 31 + i;
        }
        return x;
    }

    static void shortThread() {
        during("shortThread", 5_000_000 * scale);
    }

    static void longThread() {
        during("longThread", 2_000_000 * scale);
    }

    static void briefly(long end) throws InterruptedException {
        warm(List.of(Truth::shortThread, Truth::longThread));
        while (System.nanoTime() < end) {
            Thread thread = new Thread(Truth::shortThread);
            thread.start();
            thread.join();
            longThread();
        }
    }

    // ---- churn: classes that come and go, whose memory for code is used again ----

    private static final class Loader extends ClassLoader {
        Class<?> define(String name, byte[] bytes) {
            return defineClass(name, bytes, 0, bytes.length);
        }
    }

    static void churn(long end) throws Exception {
        for (int i = 0; System.nanoTime() < end; i++) {
            String kind = "made" + (char) ('A' + i % 5);
            Runnable made = (Runnable) new Loader().define(kind + "_" + i, classFile(kind + "_" + i, 3000))
                    .getDeclaredConstructor().newInstance();
            long pieces = 1 + i % 5;
            long start = cpu();
            long until = System.nanoTime() + pieces * 2_000_000;
            while (System.nanoTime() < until) {
                made.run();
            }
            took(kind, cpu() - start);
            if (i % 50 == 49) {
                System.gc();
            }
        }
    }

    /** class NAME implements Runnable { void run() { for (int i = ROUNDS; i != 0; i--) Truth.sink += i; } } */
    private static byte[] classFile(String name, int rounds) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(bytes);
        out.writeInt(0xcafebabe);
        out.writeInt(49); // Java 5: no stack maps needed
        String[] texts = {name, "java/lang/Object", "java/lang/Runnable", "Truth", "<init>", "()V", "Code", "run",
                "sink", "J"};
        out.writeShort(1 + texts.length + 4 + 2 + 2);
        for (String text : texts) { // 1-10
            out.writeByte(1);
            out.writeUTF(text);
        }
        for (int i = 1; i <= 4; i++) { // 11-14: classes
            out.writeByte(7);
            out.writeShort(i);
        }
        reference(out, 12, 5, 6); // 15: <init>
        reference(out, 12, 9, 10); // 16: sink
        reference(out, 10, 12, 15); // 17: Object.<init>
        reference(out, 9, 14, 16); // 18: Truth.sink
        out.writeShort(0x21);
        out.writeShort(11);
        out.writeShort(12);
        out.writeShort(1);
        out.writeShort(13);
        out.writeShort(0);
        out.writeShort(2);
        method(out, 5, 1, 1, new byte[] {0x2a, (byte) 0xb7, 0, 17, (byte) 0xb1});
        // sipush ROUNDS; istore_1; goto test
        // again: getstatic sink; iload_1; i2l; ladd; putstatic sink; iinc 1 -1; test: iload_1; ifne again; return
        method(out, 8, 4, 2, new byte[] {0x11, (byte) (rounds >> 8), (byte) rounds, 0x3c, (byte) 0xa7, 0, 15,
                (byte) 0xb2, 0, 18, 0x1b, (byte) 0x85, 0x61, (byte) 0xb3, 0, 18, (byte) 0x84, 1, -1, 0x1b, (byte) 0x9a,
                (byte) 0xff, (byte) 0xf3, (byte) 0xb1});
        out.writeShort(0);
        return bytes.toByteArray();
    }

    private static void reference(DataOutputStream out, int tag, int first, int second) throws IOException {
        out.writeByte(tag);
        out.writeShort(first);
        out.writeShort(second);
    }

    private static void method(DataOutputStream out, int name, int stack, int locals, byte[] code) throws IOException {
        out.writeShort(1);
        out.writeShort(name);
        out.writeShort(6);
        out.writeShort(1);
        out.writeShort(7);
        out.writeInt(12 + code.length);
        out.writeShort(stack);
        out.writeShort(locals);
        out.writeInt(code.length);
        out.write(code);
        out.writeShort(0);
        out.writeShort(0);
    }

    /** Has the kinds' methods compiled, but for what they do. */
    private static void warm(Collection<Runnable> kinds) {
        scale = 0;
        for (int i = 0; i < 20_000; i++) {
            kinds.forEach(Runnable::run);
        }
        scale = 1;
    }

    private static void inTurn(long end, Map<String, Runnable> kinds) {
        warm(kinds.values());
        while (System.nanoTime() < end) {
            kinds.forEach(Truth::timed);
        }
    }

    public static void main(String[] args) throws Exception {
        System.load(args[2]);
        long end = System.nanoTime() + (long) (Double.parseDouble(args[1]) * 1e9);
        switch (args[0]) {
            case "compiled" -> inTurn(end, Map.of("compiledA", Truth::compiledA, "compiledB", Truth::compiledB,
                    "compiledC", Truth::compiledC));
            case "lines" -> inTurn(end, Map.of("lineA", () -> sink += hotLines(0, sink),
                    "lineB", () -> sink += hotLines(1, sink), "lineC", () -> sink += hotLines(2, sink),
                    "lineD", () -> sink += hotLines(3, sink)));
            case "deep" -> inTurn(end, Map.of("deep30", Truth::deep30, "deep100", Truth::deep100,
                    "deep300", Truth::deep300, "deep1000", Truth::deep1000, "deep3000", Truth::deep3000));
            case "interpreted" -> inTurn(end, Map.of("interpretedA", Truth::interpretedA,
                    "interpretedB", Truth::interpretedB));
            case "jni" -> inTurn(end, Map.of("throughMix", Truth::throughMix, "throughSort", Truth::throughSort));
            case "kernel" -> inTurn(end, Map.of("kernelZero", Truth::kernelZero, "kernelRandom", Truth::kernelRandom,
                    "kernelNone", Truth::kernelNone));
            case "gc" -> {
                while (System.nanoTime() < end) {
                    allocate();
                }
                threadsTook();
            }
            case "virtual" -> virtually(end, () -> yielding("virtualA", Truth::virtualA),
                    () -> yielding("virtualB", Truth::virtualB));
            case "parked" -> virtually(end, () -> parkedA(200), () -> parkedB(200));
            case "short" -> briefly(end);
            case "churn" -> churn(end);
            default -> throw new IllegalArgumentException("no mode " + Arrays.toString(args));
        }
        String stat = Files.readString(Path.of("/proc/self/stat"));
        String[] fields = stat.substring(stat.lastIndexOf(')') + 2).split(" ");
        System.out.println("process " + fields[11] + "0000000 " + fields[12] + "0000000");
        truth.forEach((kind, took) -> System.out.println("truth " + kind + " " + took[0]));
    }
}
