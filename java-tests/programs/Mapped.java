/* Code that a source map says was inlined from elsewhere: lines 10 to 12. */
public class Mapped {
    static long mixed;

    static void work(int rounds) {
        for (int round = 0; round < rounds; round++) {
            long sum = round;
            for (int i = 0; i < 1000; i++) {
                /* Behind line 9: Util.kt:30 to 32. */
                sum = sum * 31 + i;
                sum ^= sum >>> 7;
                sum += Long.numberOfTrailingZeros(sum | 1);
            }
            mixed += sum;
        }
    }

    public static void main(String[] args) {
        for (int i = 0; i < 200; i++) {
            work(100);
        }
        System.out.println(mixed);
    }
}
