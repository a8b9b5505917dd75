import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;

/**
 * The same work again and again on an H2 database in memory: writes, look-ups, one scan of a table. After WARM seconds
 * it says so, and then writes for each round "END TIME": System.nanoTime and the thread's processor time, in ns.
 * Usage: Rounds WARM SECONDS FILE
 */
public class Rounds {
    static final int KEYS = 50_000;

    static void round(Connection bank, PreparedStatement merge, PreparedStatement read, PreparedStatement scan, int from)
            throws SQLException {
        for (int i = 0; i < 500; i++) {
            int key = (int) ((from * 500L + i) * 7919L % KEYS);
            merge.setInt(1, key);
            merge.setString(2, "name-" + (key * 31));
            merge.setInt(3, key % 1000);
            merge.executeUpdate();
            read.setInt(1, key);
            try (ResultSet rows = read.executeQuery()) {
                while (rows.next()) {
                    rows.getString(2);
                }
            }
        }
        scan.setInt(1, 500);
        try (ResultSet rows = scan.executeQuery()) {
            while (rows.next()) {
                rows.getInt(1);
            }
        }
        bank.commit();
    }

    public static void main(String[] args) throws Exception {
        long warm = (long) (Double.parseDouble(args[0]) * 1e9);
        long measured = (long) (Double.parseDouble(args[1]) * 1e9);
        var threads = ManagementFactory.getThreadMXBean();
        try (Connection bank = DriverManager.getConnection("jdbc:h2:mem:");
             PrintStream out = new PrintStream(args[2])) {
            bank.setAutoCommit(false);
            bank.createStatement().execute("CREATE TABLE t(id INT PRIMARY KEY, name VARCHAR, n INT)");
            var merge = bank.prepareStatement("MERGE INTO t KEY(id) VALUES(?, ?, ?)");
            var read = bank.prepareStatement("SELECT id, name, n FROM t WHERE id = ?");
            var scan = bank.prepareStatement("SELECT n, COUNT(*) FROM t WHERE n <= ? GROUP BY n ORDER BY n LIMIT 50");
            int from = 0;
            for (long start = System.nanoTime(); System.nanoTime() - start < warm;) {
                round(bank, merge, read, scan, from++);
            }
            System.out.println("warm");
            long last = threads.getCurrentThreadCpuTime();
            for (long start = System.nanoTime(); System.nanoTime() - start < measured;) {
                round(bank, merge, read, scan, from++);
                long now = threads.getCurrentThreadCpuTime();
                out.println(System.nanoTime() + " " + (now - last));
                last = now;
            }
        }
    }
}
