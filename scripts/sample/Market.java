import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/**
 * Something to profile: a market that takes orders, prices them and draws up statements, for as many
 * seconds of a processor as its argument says (default 8). Pricing is a hot loop, the statements are
 * collections and streams; most of the small methods are inlined by the JVM.
 */
public final class Market {
    static final int CUSTOMERS = 500;
    static final int ORDERS = 20_000;

    static final class Order {
        final int customer;
        final long cents;
        final String article;

        Order(int customer, long cents, String article) {
            this.customer = customer;
            this.cents = cents;
            this.article = article;
        }

        int customer() {
            return customer;
        }

        long cents() {
            return cents;
        }

        String article() {
            return article;
        }
    }

    private long seed = 42;

    int random(int bound) {
        seed = seed * 6364136223846793005L + 1442695040888963407L;
        return (int) ((seed >>> 33) % bound);
    }

    /** The hot loop: a price path of a hundred steps for every order. */
    double price(int article) {
        double price = 100 + article;
        for (int step = 0; step < 100; step++) {
            price = drift(price, step);
        }
        return price;
    }

    static double drift(double price, int step) {
        double trend = price * 0.0001;
        return (step & 3) == 0 ? price + trend : Math.sqrt(price * price - trend);
    }

    List<Order> takeOrders() {
        List<Order> orders = new ArrayList<>();
        for (int i = 0; i < ORDERS; i++) {
            int article = random(100);
            orders.add(new Order(random(CUSTOMERS), (long) (price(article) * 100), "article-" + article));
        }
        return orders;
    }

    Map<Integer, Long> totals(List<Order> orders) {
        Map<Integer, Long> totals = new HashMap<>();
        for (Order order : orders) {
            totals.merge(order.customer(), order.cents(), Long::sum);
        }
        return totals;
    }

    List<String> statements(List<Order> orders) {
        return orders.stream()
                .filter(order -> order.cents() > 10_000)
                .sorted(Comparator.comparing(Order::article).thenComparingLong(Order::cents))
                .map(order -> order.article() + ": " + order.cents())
                .collect(Collectors.toList());
    }

    public static void main(String[] arguments) {
        int seconds = arguments.length > 0 ? Integer.parseInt(arguments[0]) : 8;
        ThreadMXBean clock = ManagementFactory.getThreadMXBean();
        Market market = new Market();
        long days = 0;
        long checksum = 0;
        while (clock.getCurrentThreadCpuTime() < seconds * 1_000_000_000L) {
            List<Order> orders = market.takeOrders();
            checksum += market.totals(orders).size() + market.statements(orders).size();
            days++;
        }
        System.out.printf("%d days, %d customers and statements%n", days, checksum);
    }
}
