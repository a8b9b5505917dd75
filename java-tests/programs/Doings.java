import java.io.InputStream;
import java.util.ArrayDeque;
import java.util.function.IntBinaryOperator;

/**
 * Makes the JVM do things for so many rounds: "Doings ROUNDS". Each round compiles the same class anew
 * under another loader, then surprises the compiled code, so that it is given up; and makes garbage.
 * JDK 11 and later.
 */
public class Doings {
    /** Compiled without its rare branch, which nobody took yet. */
    public static class Trap implements IntBinaryOperator {
        @Override
        public int applyAsInt(int x, int rare) {
            int sum = 0;
            for (int i = 0; i < 200; i++) sum += i * x;
            if (x == rare) sum ^= Integer.bitCount(sum);
            return sum;
        }
    }

    static final class Loader extends ClassLoader {
        Class<?> again(Class<?> known) throws Exception {
            try (InputStream in = Doings.class.getResourceAsStream("/" + known.getName() + ".class")) {
                byte[] bytes = in.readAllBytes();
                return defineClass(known.getName(), bytes, 0, bytes.length);
            }
        }
    }

    static volatile int sink;
    static final ArrayDeque<byte[]> kept = new ArrayDeque<>();

    static void garbage() {
        for (int i = 0; i < 200; i++) {
            kept.add(new byte[50_000]);
            if (kept.size() > 300) kept.remove();
        }
    }

    static void surprise() throws Exception {
        IntBinaryOperator trap = (IntBinaryOperator) new Loader().again(Trap.class).getDeclaredConstructor().newInstance();
        long until = System.nanoTime() + 60_000_000;
        while (System.nanoTime() < until) {
            for (int i = 0; i < 500; i++) sink += trap.applyAsInt(i, -1);
        }
        for (int i = 0; i < 3; i++) sink += trap.applyAsInt(7, 7);
    }

    public static void main(String[] args) throws Exception {
        System.out.println("ready");
        for (int round = 0; round < Integer.parseInt(args[0]); round++) {
            surprise();
            garbage();
            Thread other = new Thread(() -> sink++, "short-lived-" + round);
            other.start();
            other.join();
        }
    }
}
