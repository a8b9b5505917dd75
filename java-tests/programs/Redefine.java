import java.io.File;
import java.lang.instrument.ClassDefinition;
import java.lang.instrument.Instrumentation;
import java.nio.file.Files;
import java.nio.file.Paths;

/**
 * Runs Hot until it is compiled, puts the class file of args[0] in its place, and runs it again,
 * until the directory args[1] has a table of methods that tells of it. The ids of Hot's methods stay
 * the same, their line tables do not.
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

    public static void main(String[] args) throws Exception {
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
