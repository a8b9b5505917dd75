import java.util.zip.CRC32;

/** Calls methods that the interpreter has in assembly and that build no frame, for so many seconds. */
public class Entries {
    static final byte[] BYTES = new byte[100_000];
    static volatile double sink;

    static void checksum() {
        CRC32 crc = new CRC32();
        crc.update(BYTES);
        sink = crc.getValue();
    }

    static void maths() {
        double sum = 0;
        for (int i = 1; i < 2000; i++) {
            sum += Math.sin(i) + Math.log(i) + Math.pow(i, 1.3);
        }
        sink = sum;
    }

    public static void main(String[] arguments) {
        long end = System.nanoTime() + Long.parseLong(arguments[0]) * 1_000_000_000;
        while (System.nanoTime() < end) {
            for (int i = 0; i < 20; i++) {
                checksum();
            }
            maths();
        }
    }
}
