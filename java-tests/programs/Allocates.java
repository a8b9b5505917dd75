/** Allocates so many MB in small arrays for each number that it reads, then says "done". JDK 11 and later. */
public class Allocates {
    static volatile byte[] last;

    public static void main(String[] arguments) throws java.io.IOException {
        var in = new java.io.BufferedReader(new java.io.InputStreamReader(System.in));
        System.out.println("ready");
        for (String line; (line = in.readLine()) != null;) {
            for (int i = 0, n = Integer.parseInt(line) * 1024; i < n; i++) {
                last = new byte[1024 - 16];
            }
            System.out.println("done");
        }
    }
}
