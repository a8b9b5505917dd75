/*
 * Nearly all of its time is in hot's loop. C2 inlines the boxing in helper late, and then says that the loop which it
 * has unrolled is at that call (agent/methods/inlines.c).
 */
public class Boxed {
    private static long sum;
    private static Integer boxed = 5;

    private static long hot(int n, long x) {
        for (int i = 0; i < n; i++) {
            x = x * 17 + i;
        }
        return x;
    }

    private static int helper(long value) {
        Integer made = Integer.valueOf((int) (value & 1023));
        return ((value & 1) == 0 ? made : boxed).intValue();
    }

    private static long run(int n) {
        long value = hot(n, sum);
        return value + helper(value);
    }

    public static void main(String[] args) {
        long end = System.nanoTime() + Long.parseLong(args[0]) * 1_000_000_000L;
        while (System.nanoTime() < end) {
            for (int i = 0; i < 100; i++) {
                sum += run(20_000);
            }
        }
        System.out.println(sum);
    }
}
