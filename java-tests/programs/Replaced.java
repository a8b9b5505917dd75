import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.StandardCopyOption;

/**
 * Works in a library of C, and puts another one in its place when half of the time is over: that of the processor, of
 * which a busy machine gives it little. Usage: Replaced LIBRARY OTHER SECONDS
 */
public class Replaced {
    static native long spin(long n);

    static long now() {
        return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
    }

    public static void main(String[] args) throws Exception {
        Path library = Paths.get(args[0]).toAbsolutePath();
        System.load(library.toString());
        long time = Long.parseLong(args[2]) * 1_000_000_000L, start = now(), sum = 0;
        boolean replaced = false;
        while (now() - start < time) {
            sum += spin(sum);
            if (!replaced && now() - start > time / 2) {
                replaced = true;
                Files.move(Paths.get(args[1]), library, StandardCopyOption.REPLACE_EXISTING,
                    StandardCopyOption.ATOMIC_MOVE);
            }
        }
        System.out.println("sum " + sum);
    }
}
