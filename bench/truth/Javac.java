import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import javax.tools.ToolProvider;

/** javac in this JVM; then what it took: "took WALL_NS CPU_NS PEAK_KB", of the whole process. */
public final class Javac {
    public static void main(String[] args) throws IOException {
        long start = System.nanoTime();
        int status = ToolProvider.getSystemJavaCompiler().run(null, null, null, args);
        long wall = System.nanoTime() - start;
        var os = (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        String peak = Files.readAllLines(Path.of("/proc/self/status")).stream()
                .filter(line -> line.startsWith("VmHWM")).findFirst().orElse("0").replaceAll("\\D", "");
        System.out.println("took " + wall + " " + os.getProcessCpuTime() + " " + peak);
        System.exit(status);
    }
}
