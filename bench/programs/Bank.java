import java.lang.management.ManagementFactory;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.util.Random;

/**
 * So many transfers between accounts of a database in memory (H2, behind the class path), in two threads:
 * "Bank TRANSFERS". The first tenth is warming up; of the rest it prints nanoseconds of the clock and of the
 * processors: "took WALL CPU".
 */
public class Bank {
    static final int ACCOUNTS = 50_000;
    static final String URL = "jdbc:h2:mem:bank;DB_CLOSE_DELAY=-1";

    static void transfer(int transfers, long seed) throws Exception {
        Random random = new Random(seed);
        try (Connection connection = DriverManager.getConnection(URL)) {
            connection.setAutoCommit(false);
            PreparedStatement change = connection.prepareStatement("UPDATE account SET balance = balance + ? WHERE id = ?");
            PreparedStatement note = connection.prepareStatement("INSERT INTO transfer(source, target, amount, text) VALUES (?, ?, ?, ?)");
            for (int i = 0; i < transfers; i++) {
                // Of different parities, so that the threads never wait for one another.
                int source = random.nextInt(ACCOUNTS / 2) * 2 + (int) (seed & 1);
                int target = random.nextInt(ACCOUNTS / 2) * 2 + (int) (seed & 1);
                int amount = random.nextInt(1000);
                change.setInt(1, -amount);
                change.setInt(2, source);
                change.executeUpdate();
                change.setInt(1, amount);
                change.setInt(2, target);
                change.executeUpdate();
                note.setInt(1, source);
                note.setInt(2, target);
                note.setInt(3, amount);
                note.setString(4, "transfer " + i + " of " + amount);
                note.executeUpdate();
                connection.commit();
            }
        }
    }

    static void run(int transfers) throws Exception {
        Thread other = new Thread(() -> {
            try {
                transfer(transfers / 2, 1);
            } catch (Exception e) {
                e.printStackTrace();
                Runtime.getRuntime().halt(1);
            }
        });
        other.start();
        transfer(transfers / 2, 2);
        other.join();
    }

    static long cpu() {
        return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
    }

    public static void main(String[] args) throws Exception {
        int transfers = Integer.parseInt(args[0]);
        try (Connection connection = DriverManager.getConnection(URL)) {
            connection.createStatement().execute("CREATE TABLE account(id INT PRIMARY KEY, balance BIGINT)");
            connection.createStatement().execute("INSERT INTO account SELECT x - 1, 1000 FROM system_range(1, " + ACCOUNTS + ")");
            connection.createStatement().execute("CREATE TABLE transfer(source INT, target INT, amount INT, text VARCHAR(100))");
        }
        run(transfers / 10);
        long wall = System.nanoTime(), cpu = cpu();
        run(transfers - transfers / 10);
        System.out.println("took " + (System.nanoTime() - wall) + " " + (cpu() - cpu));
    }
}
