import java.io.RandomAccessFile;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Paths;

/**
 * Touches each page of new mappings of a file, and computes between them: page faults come in bursts. Prints how many of
 * them were in touch(), and in the whole process by the kernel's count.
 *
 * Usage: Faults FILE ROUNDS
 */
public final class Faults {
    static final int SIZE = 16 << 20;
    static final int PAGE = 4096;

    static void touch(FileChannel file) throws Exception {
        MappedByteBuffer pages = file.map(FileChannel.MapMode.PRIVATE, 0, SIZE);
        for (int at = 0; at < SIZE; at += PAGE) {
            pages.put(at, (byte) 1);
        }
    }

    static double compute() {
        double sum = 0;
        for (int i = 0; i < 10_000_000; i++) {
            sum += Math.sqrt(i);
        }
        return sum;
    }

    public static void main(String[] arguments) throws Exception {
        int rounds = Integer.parseInt(arguments[1]);
        double sum = 0;
        try (RandomAccessFile file = new RandomAccessFile(arguments[0], "rw")) {
            file.setLength(SIZE);
            for (int round = 0; round < rounds; round++) {
                touch(file.getChannel());
                sum += compute();
            }
        }
        String[] stat = new String(Files.readAllBytes(Paths.get("/proc/self/stat"))).replaceAll(".*\\) ", "").split(" ");
        System.out.println("truth " + (long) rounds * (SIZE / PAGE) + " " + (Long.parseLong(stat[7]) + Long.parseLong(stat[9]))
            + " " + (sum > 0));
    }
}
