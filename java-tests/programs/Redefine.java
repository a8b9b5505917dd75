import java.io.File;
import java.lang.instrument.ClassDefinition;
import java.lang.instrument.Instrumentation;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;

/**
 * Runs Hot until it is compiled, puts the class file of args[0] in its place, and runs it again,
 * until the directory args[1] has a table of methods that tells of it. The ids of Hot's methods stay
 * the same, their line tables do not. With "stay" before the class file, that is Stay's: threads
 * stay in its first, second and third version until the input ends.
 */
public class Redefine {
    static Instrumentation instrumentation;

    public static void premain(String arguments, Instrumentation given) {
        instrumentation = given;
    }

    static int run() {
        int sum = 0;
        for (int i = 0; i < 20_000; i++) {
            sum += Hot.run(1_000);
        }
        return sum;
    }

    static void stay(byte[] other) throws Exception {
        Stay.enter();
        for (int i = 0; i < 2; i++) {
            instrumentation.redefineClasses(new ClassDefinition(Stay.class, other));
            Stay.enter();
        }
        System.out.println("ready");
        while (System.in.read() >= 0) {
        }
    }

    public static void main(String[] args) throws Exception {
        if (args[0].equals("stay")) {
            stay(Files.readAllBytes(Paths.get(args[1])));
            return;
        }
        int before = run();
        byte[] other = Files.readAllBytes(Paths.get(args[0]));
        instrumentation.redefineClasses(new ClassDefinition(Hot.class, other));
        System.out.println(before == run() ? "same" : "different");
        long deadline = System.nanoTime() + 20_000_000_000L;
        boolean told = false;
        while (!told && System.nanoTime() < deadline) {
            run();
            told = isTold(args[1]);
        }
        System.out.println(told ? "told" : "not told");
    }

    /** Whether a table of methods there has the source file of the other class. */
    static boolean isTold(String directory) throws Exception {
        boolean told = false;
        for (String name : new File(directory).list()) {
            if (name.endsWith(".methods")) {
                byte[] table = Files.readAllBytes(Paths.get(directory, name));
                told |= new String(table, "ISO-8859-1").contains("Moved.java");
            }
        }
        return told;
    }
}

class Hot {
    static int inner(int x) {
        return x * 31 + 7;
    }

    static int run(int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            sum += inner(i) ^ inner(i + 1);
        }
        return sum;
    }
}

/** Each thread that is in here runs the version in which it came. */
class Stay implements Runnable {
    private final CountDownLatch in = new CountDownLatch(1);

    public void run() {
        in.countDown();
        for (;;) {
            LockSupport.parkNanos(1_000_000L);
        }
    }

    static void enter() throws Exception {
        Stay stay = new Stay();
        Thread thread = new Thread(stay);
        thread.setDaemon(true);
        thread.start();
        stay.in.await();
    }
}
