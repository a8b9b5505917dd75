import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.tools.JavaCompiler;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;

/**
 * A JVM that is at work when somebody comes to look: compiles the same sources again and again with
 * the javac API, and prints "ROUND NANOTIME MILLISECONDS" for each time.
 *
 * Usage: Warm SOURCES OUT [SECONDS [ROUNDS]]; SOURCES is java.xml's root, or one with a part of it
 * (JDK 8, which has no modules: the same packages).
 * After that many rounds it prints "idle" and sleeps.
 */
public class Warm {
    public static void main(String[] args) throws IOException, InterruptedException {
        Path root = Paths.get(args[0]);
        long until = System.nanoTime() + Long.parseLong(args.length > 2 ? args[2] : "3600") * 1_000_000_000L;
        int rounds = args.length > 3 ? Integer.parseInt(args[3]) : Integer.MAX_VALUE;
        List<File> files;
        try (Stream<Path> all = Files.walk(root)) {
            files = all.filter(f -> f.toString().endsWith(".java")).map(Path::toFile).collect(Collectors.toList());
        }
        JavaCompiler javac = ToolProvider.getSystemJavaCompiler();
        for (int round = 0; System.nanoTime() < until && round < rounds; round++) {
            long start = System.nanoTime();
            List<String> options = new ArrayList<>(Arrays.asList("-nowarn", "-Xlint:none",
                "-XDignore.symbol.file", "-proc:none", "-d", args[1]));
            if (System.getProperty("java.specification.version").startsWith("1.")) {
                // Or its javac hides the JDK's own packages: a file manager of ours heeds no -XDignore.symbol.file.
                options.addAll(Arrays.asList("-bootclasspath", System.getProperty("sun.boot.class.path")));
            } else {
                options.addAll(Arrays.asList("--patch-module", "java.xml=" + root));
            }
            try (StandardJavaFileManager manager = javac.getStandardFileManager(null, null, null)) {
                boolean fine = javac.getTask(null, manager, d -> { }, options, null,
                    manager.getJavaFileObjectsFromFiles(files)).call();
                if (!fine) {
                    System.out.println("javac failed");
                    System.exit(1);
                }
            }
            System.out.println(round + " " + start + " " + (System.nanoTime() - start) / 1_000_000);
        }
        if (rounds < Integer.MAX_VALUE) {
            System.out.println("idle");
            TimeUnit.DAYS.sleep(1);
        }
    }
}
