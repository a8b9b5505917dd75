import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * Collections, lambdas and streams: code of which most is inlined. Usage: Streams SECONDS, which are of a processor:
 * by the clock little is compiled on a busy machine.
 */
public class Streams {
    static final class Order {
        private final int customer;
        private final String product;
        private final long cents;

        Order(int customer, String product, long cents) {
            this.customer = customer;
            this.product = product;
            this.cents = cents;
        }

        int customer() {
            return customer;
        }

        String product() {
            return product;
        }

        long cents() {
            return cents;
        }
    }

    private static List<Order> orders(int count) {
        List<Order> orders = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            orders.add(new Order(i * 31 % 97, "product" + i % 53, i * 17L % 1009));
        }
        return orders;
    }

    private static long sum(List<Order> orders) {
        return orders.stream().filter(o -> o.customer() % 3 != 0).mapToLong(Order::cents).map(c -> c * 2).sum();
    }

    private static long grouped(List<Order> orders) {
        Map<String, Long> totals =
            orders.stream().collect(Collectors.groupingBy(Order::product, TreeMap::new,
                Collectors.summingLong(Order::cents)));
        return totals.values().stream().mapToLong(Long::longValue).max().orElse(0);
    }

    private static int sorted(List<Order> orders) {
        List<Order> copy = new ArrayList<>(orders);
        copy.sort(Comparator.comparing(Order::product).thenComparing(Order::customer));
        return copy.get(copy.size() / 2).customer();
    }

    private static int counted(int rounds) {
        Map<Integer, Integer> counts = new HashMap<>();
        IntStream.range(0, rounds).map(i -> i * i % 251).forEach(i -> counts.merge(i, 1, Integer::sum));
        return counts.size();
    }

    public static void main(String[] args) {
        ThreadMXBean clock = ManagementFactory.getThreadMXBean();
        long until = Long.parseLong(args[0]) * 1_000_000_000L;
        List<Order> orders = orders(5_000);
        long result = 0;
        while (clock.getCurrentThreadCpuTime() < until) {
            result += sum(orders) + grouped(orders) + sorted(orders) + counted(5_000);
        }
        System.out.println(result);
    }
}
