/** Creates exceptions without a pause: "Throws SECONDS DEPTH", each so many calls deep. It prints how many. */
public class Throws {
    static volatile Object sink;
    static long created;

    static void create(int depth) {
        if (depth > 0) {
            create(depth - 1);
        } else {
            sink = new IllegalStateException();
            created++;
        }
    }

    public static void main(String[] args) {
        long until = System.nanoTime() + Integer.parseInt(args[0]) * 1_000_000_000L;
        int depth = Integer.parseInt(args[1]);
        while (System.nanoTime() < until) {
            for (int i = 0; i < 100; i++) create(depth);
        }
        System.out.println("exception java.lang.IllegalStateException " + created);
    }
}
