import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.Arrays;

/**
 * Keeps the JIT busy without end, as java-tests/programs/Churn.java does: each round loads a class, works with it until
 * it is compiled, and drops an older one. For each round a line with System.nanoTime at its end and the processor time, in
 * ns, that it took this thread. Usage: Compiled FILE
 */
public class Compiled {
    public static void main(String[] args) throws Exception {
        Copies copies = new Copies("Churn");
        Churn.Shape[] shapes = new Churn.Shape[3];
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        long sum = 0;
        try (PrintStream out = new PrintStream(args[0])) {
            Arrays.fill(shapes, (Churn.Shape) copies.constructor(0).newInstance());
            System.out.println("ready");
            long before = threads.getCurrentThreadCpuTime();
            for (int i = 1; sum != 1; i++) { // which it never is, but the sum has to be made
                shapes[i % shapes.length] = (Churn.Shape) copies.constructor(i % 1_000_000).newInstance();
                sum = sum * 31 + Churn.sum(shapes, 20_000);
                if (i % 16 == 15) {
                    System.gc();
                }
                long now = threads.getCurrentThreadCpuTime();
                out.println(System.nanoTime() + " " + (now - before));
                before = now;
            }
        }
    }
}
