import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

/**
 * Work of several kinds for so many days, some 3 ms each; of checksum, about a fifth of it, as many
 * passes as the second argument says (800). Prints how much was done.
 */
public final class Shop {
    private final byte[] block = new byte[1 << 16];
    private long seed = 42;

    int random(int bound) {
        seed = seed * 6364136223846793005L + 1442695040888963407L;
        return (int) ((seed >>> 33) % bound);
    }

    int checksum(int passes) {
        int sum = 0;
        for (int pass = 0; pass < passes; pass++) {
            for (int i = 0; i < 1024; i++) {
                sum = sum * 31 + block[(pass * 64 + i) & 0xffff];
            }
        }
        return sum;
    }

    long sortAll(int count) {
        long[] all = new long[count];
        for (int i = 0; i < count; i++) {
            all[i] = random(1 << 30);
        }
        Arrays.sort(all);
        return all[count / 2];
    }

    int index(int count) {
        Map<Integer, Integer> map = new HashMap<>();
        for (int i = 0; i < count; i++) {
            map.merge(random(5000), 1, Integer::sum);
        }
        return map.size();
    }

    int texts(int count) {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < count; i++) {
            text.append("order-").append(random(1000)).append(';');
        }
        return text.toString().split(";").length;
    }

    double price(int count) {
        double price = 100;
        for (int i = 0; i < count; i++) {
            price = (i & 3) == 0 ? price * 1.0001 : Math.sqrt(price * price - 0.01);
        }
        return price;
    }

    public static void main(String[] arguments) {
        int days = Integer.parseInt(arguments[0]);
        int passes = Integer.parseInt(arguments[1]);
        Shop shop = new Shop();
        double sink = 0;
        for (int day = 0; day < days; day++) {
            sink += shop.checksum(passes) + shop.sortAll(12000) + shop.index(25000) + shop.texts(9000) + shop.price(80000);
        }
        System.out.printf("%d days, %g%n", days, sink);
    }
}
