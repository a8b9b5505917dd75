import java.util.concurrent.TimeUnit;

/**
 * Keeps the JIT busy: loads, compiles and unloads classes, and makes compiled code wrong by loading
 * further implementors of an interface. What it prints depends on its arguments alone, so that a run
 * with the agent can be compared with one without.
 *
 * Usage: Churn ROUNDS [ending], ending being one of
 *   exit   System.exit(3) from another thread      halt   Runtime.halt(4) from another thread
 *   exec   runs a program that does not exist, then one that lists its open files
 *   wait   prints "ready" and sleeps until it is killed
 */
public class Churn {
    public interface Shape {
        int area(int scale);
    }

    /** Compiled for one implementor, then wrong, then compiled again. */
    static long sum(Shape[] shapes, int rounds) {
        long sum = 0;
        for (int i = 0; i < rounds; i++) {
            sum = sum * 31 + shapes[i % shapes.length].area(i);
        }
        return sum;
    }

    public static void main(String[] args) throws Exception {
        int rounds = Integer.parseInt(args[0]);
        String ending = args.length > 1 ? args[1] : "";
        Copies copies = new Copies("Churn");
        Shape[] shapes = new Shape[3];
        long sum = 0;
        for (int i = 0; i < rounds; i++) {
            Shape shape = (Shape) copies.constructor(i).newInstance();
            shapes[i % shapes.length] = shape;
            if (shapes[1] == null || shapes[2] == null) {
                shapes[1] = shape;
                shapes[2] = shape;
            }
            sum = sum * 31 + sum(shapes, 20_000);
            if (i % 16 == 15) {
                System.gc();
            }
        }
        System.out.println("sum " + sum);
        switch (ending) {
        case "exit":
            other(() -> System.exit(3));
            break;
        case "halt":
            other(() -> Runtime.getRuntime().halt(4));
            break;
        case "exec":
            exec();
            break;
        case "wait":
            System.out.println("ready");
            TimeUnit.DAYS.sleep(1);
            break;
        default:
            break;
        }
    }

    static void other(Runnable end) throws InterruptedException {
        new Thread(end).start();
        TimeUnit.DAYS.sleep(1);
    }

    static void exec() throws Exception {
        try {
            new ProcessBuilder("/nonexistent/program").start();
            System.out.println("started what does not exist");
        } catch (java.io.IOException e) {
            System.out.println("exec failed, as it must");
        }
        Process child = new ProcessBuilder("ls", "-l", "/proc/self/fd").start();
        try (java.io.InputStream in = child.getInputStream()) {
            for (int b = in.read(); b >= 0; b = in.read()) {
                System.out.write(b);
            }
        }
        System.out.println("child " + child.waitFor());
    }
}

class Churn_xxxxxx implements Churn.Shape {
    private final int[] cells = new int[64];

    @Override
    public int area(int scale) {
        int sum = scale;
        for (int i = 0; i < 8; i++) {
            sum = fold(sum, cells[(scale + i) & 63]);
        }
        cells[scale & 63] = sum;
        return sum;
    }

    private static int fold(int sum, int cell) {
        return (sum << 5) - sum + (cell ^ (cell >>> 7)) + 1;
    }
}
