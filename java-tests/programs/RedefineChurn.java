import java.io.PrintWriter;
import java.lang.instrument.ClassDefinition;
import java.lang.instrument.Instrumentation;
import java.lang.reflect.Constructor;

/**
 * Phases (see there) in places that code of redefined classes has left: in each round one class is
 * redefined once more, which has been compiled anew since, and another one that was compiled before
 * the first round; then new classes run where the collector has made room. Writes the log of Phases;
 * classes 8xxxxx were there before the first round, 900000 is the one that is redefined in each.
 *
 * Usage: RedefineChurn LOG ROUNDS MILLISECONDS, and a line on its input before the first round
 */
public class RedefineChurn {
    static final int HOT = 900_000;
    static final int EARLY = 800_000;
    static final int PHASES = 4; // of a round

    static Instrumentation instrumentation;

    public static void premain(String arguments, Instrumentation given) {
        instrumentation = given;
    }

    private final Copies copies = new Copies("Phase");
    private final StringBuilder log = new StringBuilder();
    private final long length;
    private long sum;

    private RedefineChurn(long length) throws Exception {
        this.length = length;
    }

    private Phases.Body create(int number) throws Exception {
        Constructor<?> constructor = copies.constructor(number);
        return (Phases.Body) constructor.newInstance();
    }

    private void run(Phases.Body body, int number, long start, long length) {
        sum += body.once();
        long alone = System.nanoTime();
        sum += body.run(alone + length);
        long end = System.nanoTime(); // before any other code runs
        log.append(String.format("%d %d %d %d%n", number, start, alone, end));
    }

    /** The same class with another constant, so that none of its code can stay. */
    private void redefine(Phases.Body body, int number, int version) throws Exception {
        byte[] bytes = copies.bytes(number);
        for (int i = 0; i + 2 < bytes.length; i++) {
            if (bytes[i] == 0x11 && bytes[i + 1] == 0x30 && bytes[i + 2] == 0x39) { // sipush 12345
                bytes[i + 2] += version;
            }
        }
        instrumentation.redefineClasses(new ClassDefinition(body.getClass(), bytes));
    }

    public static void main(String[] args) throws Exception {
        int rounds = Integer.parseInt(args[1]);
        RedefineChurn churn = new RedefineChurn(Long.parseLong(args[2]) * 1_000_000);
        Phases.Body[] early = new Phases.Body[rounds];
        for (int i = 0; i < rounds; i++) {
            long start = System.nanoTime();
            early[i] = churn.create(EARLY + i);
            churn.run(early[i], EARLY + i, start, churn.length);
        }
        Phases.Body hot = churn.create(HOT);
        System.out.println("ready");
        System.in.read();
        for (int round = 0; round < rounds; round++) {
            churn.run(hot, HOT, System.nanoTime(), churn.length);
            churn.redefine(hot, HOT, round + 1);
            churn.redefine(early[round], EARLY + round, 1);
            System.gc(); // frees the code of both
            for (int i = 0; i < PHASES; i++) {
                long start = System.nanoTime();
                int number = round * PHASES + i;
                churn.run(churn.create(number), number, start, churn.length);
            }
        }
        try (PrintWriter out = new PrintWriter(args[0])) {
            out.print(churn.log);
        }
        System.out.println("sum " + (churn.sum != 0));
    }
}
