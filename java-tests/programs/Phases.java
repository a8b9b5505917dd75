import java.io.PrintWriter;
import java.lang.reflect.Constructor;

/**
 * Classes that come, run for a few milliseconds and go, so that generated code is freed and its
 * place reused all the time. Writes down on System.nanoTime(), which is CLOCK_MONOTONIC and so the
 * dump's own clock, which class ran when: "NUMBER START ALONE END" a line. From ALONE on all its
 * classes are linked, and nothing but its own code runs.
 *
 * Usage: Phases LOG COUNT MILLISECONDS
 */
public class Phases {
    public interface Body {
        long once();

        long run(long until);
    }

    public static void main(String[] args) throws Exception {
        int count = Integer.parseInt(args[1]);
        long length = Long.parseLong(args[2]) * 1_000_000;
        Copies copies = new Copies("Phase");
        long[] starts = new long[count];
        long[] alone = new long[count];
        long[] ends = new long[count];
        long sum = 0;
        for (int i = 0; i < count; i++) {
            Constructor<?> constructor = copies.constructor(i);
            starts[i] = System.nanoTime();
            Body body = (Body) constructor.newInstance();
            sum += body.once();
            alone[i] = System.nanoTime();
            sum += body.run(alone[i] + length);
            ends[i] = System.nanoTime();
            if (i % 4 == 3) {
                constructor = null;
                body = null;
                System.gc(); // unloads the classes, and frees their code
            }
        }
        try (PrintWriter log = new PrintWriter(args[0])) {
            for (int i = 0; i < count; i++) {
                log.println(i + " " + starts[i] + " " + alone[i] + " " + ends[i]);
            }
        }
        System.out.println("sum " + (sum != 0));
    }
}

/** Methods of different sizes, hot enough to be compiled within a few milliseconds. */
class Phase_xxxxxx implements Phases.Body {
    private final int[] cells = new int[1024];

    @Override
    public long once() {
        return mix(fill((int) System.nanoTime())) + scan() + text(1);
    }

    @Override
    public long run(long until) {
        long sum = 0;
        while (System.nanoTime() < until) {
            sum += mix(fill((int) sum)) + scan() + text((int) sum);
        }
        return sum;
    }

    private int fill(int seed) {
        for (int i = 0; i < cells.length; i++) {
            seed = step(seed, i);
            cells[i] = seed;
        }
        return seed;
    }

    private static int step(int seed, int i) {
        return seed * 1103515245 + 12345 + i;
    }

    private long mix(int seed) {
        long sum = seed;
        for (int cell : cells) {
            sum = (sum << 5) - sum + (cell ^ (cell >>> 7));
        }
        return sum;
    }

    private int scan() {
        int most = Integer.MIN_VALUE;
        for (int i = 1; i < cells.length; i++) {
            most = Math.max(most, cells[i] - cells[i - 1]);
        }
        return most;
    }

    private int text(int seed) {
        int vowels = 0;
        for (int i = 0; i < 256; i++) {
            switch ((seed + i) % 26) {
            case 0:
            case 4:
            case 8:
                vowels += 3;
                break;
            case 14:
                vowels += 2;
                break;
            default:
                vowels ^= i;
            }
        }
        return vowels;
    }
}
