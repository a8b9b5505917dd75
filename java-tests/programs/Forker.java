import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * A JVM that works, starts another one, and works on while that one works. Usage: Forker SECONDS
 * [COMMAND...]; the seconds are of a processor
 */
public class Forker {
    private static long work(long seconds) {
        ThreadMXBean clock = ManagementFactory.getThreadMXBean();
        long until = clock.getCurrentThreadCpuTime() + seconds * 1_000_000_000L;
        long result = 0;
        while (clock.getCurrentThreadCpuTime() < until) {
            for (int i = 0; i < 100_000; i++) {
                result = result * 31 + (result >>> 7) + i;
            }
        }
        return result;
    }

    private static long parentsOwnWork(long seconds) {
        return work(seconds) + 1;
    }

    private static long childsOwnWork(long seconds) {
        return work(seconds) + 2;
    }

    public static void main(String[] args) throws Exception {
        long seconds = Long.parseLong(args[0]);
        if (args.length == 1) {
            System.out.println(childsOwnWork(seconds));
            return;
        }
        long result = parentsOwnWork(1);
        List<String> command = new ArrayList<>(Arrays.asList(args).subList(1, args.length));
        Process child = new ProcessBuilder(command).inheritIO().start();
        result += parentsOwnWork(seconds);
        System.out.println(result + child.waitFor());
    }
}
