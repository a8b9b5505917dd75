import java.io.InputStream;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * A JVM with a great many compiled methods: loads copies of the class Many_xxxxxx, each under a name
 * of its own, and calls all their methods; then prints "idle" and sleeps, or calls them again without
 * end. To be run with -Xcomp.
 *
 * Usage: Many COPIES [again]
 */
public class Many {
    static final class Loader extends ClassLoader {
        Class<?> define(byte[] bytes) {
            return defineClass(null, bytes, 0, bytes.length);
        }
    }

    public static void main(String[] args) throws Exception {
        byte[] from = "Many_xxxxxx".getBytes(StandardCharsets.US_ASCII);
        byte[] template;
        try (InputStream in = Many.class.getResourceAsStream("Many_xxxxxx.class")) {
            template = in.readAllBytes();
        }
        Loader loader = new Loader();
        List<Method> all = new ArrayList<>();
        long sum = 0;
        for (int copy = 0; copy < Integer.parseInt(args[0]); copy++) {
            byte[] to = String.format("Many_%06d", copy).getBytes(StandardCharsets.US_ASCII);
            byte[] bytes = template.clone();
            for (int i = 0; i + from.length <= bytes.length; i++) {
                int k = 0;
                while (k < from.length && bytes[i + k] == from[k]) {
                    k++;
                }
                if (k == from.length) {
                    System.arraycopy(to, 0, bytes, i, to.length);
                }
            }
            all.add(loader.define(bytes).getMethod("all", int.class));
            sum += (int) all.get(copy).invoke(null, copy);
        }
        System.out.println("idle " + (sum != 0));
        while (args.length > 1) {
            for (Method method : all) {
                sum += (int) method.invoke(null, (int) sum);
            }
        }
        TimeUnit.DAYS.sleep(1);
    }
}
