import java.util.List;

/**
 * The sample's market with breaks: for tests that need a JVM which runs and compiles, and not one that keeps a
 * processor busy all the while that others look at it. Begins with fifty days without a break, unless told otherwise, so
 * that its methods are compiled soon.
 *
 * Usage: [-Dpause=MILLISECONDS] [-Dbusy=DAYS] Calm SECONDS [ANYTHING]. With the pauses of 50 ms that it makes unless told otherwise it
 * takes a sixth of a processor.
 */
public final class Calm {
    public static void main(String[] arguments) throws InterruptedException {
        long end = System.nanoTime() + Integer.parseInt(arguments[0]) * 1_000_000_000L;
        Market market = new Market();
        long checksum = 0;
        for (int day = 0; System.nanoTime() < end; day++) {
            List<Market.Order> orders = market.takeOrders();
            checksum += market.totals(orders).size() + market.statements(orders).size();
            if (day >= Integer.getInteger("busy", 50)) {
                Thread.sleep(Integer.getInteger("pause", 50));
            }
        }
        System.out.println(checksum);
    }
}
