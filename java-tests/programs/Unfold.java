/* outer calls middle twice, which calls leaf; a volatile access in each keeps its code. */
public class Unfold {
    static volatile int outermost, between, innermost;

    static void leaf(int x) {
        innermost = x;
    }

    static void middle(int x) {
        between = x;
        leaf(x + 1);
        between = x + 2;
    }

    static void outer(int x) {
        outermost = x;
        middle(x + 1);
        outermost = x + 2;
    }

    public static void main(String[] arguments) {
        for (int i = 0; i < 200_000; i++) {
            outer(i);
        }
    }
}
