import io.jdagent.Labels;

/**
 * Threads with long names and labels, a virtual one among them where the JDK has such; each works a little, in a method
 * of its own, so that a sample's innermost frame tells whose it is (a virtual thread's callers lie in the heap once it
 * has slept), and sleeps. Each says when it begins.
 *
 * Usage: Tagged SECONDS [ANYTHING]
 */
public final class Tagged {
    static volatile long sink;

    interface Work {
        void until(long end);
    }

    static void north(long end) {
        while (System.nanoTime() - end < 0) {
            sink++;
        }
    }

    static void south(long end) {
        while (System.nanoTime() - end < 0) {
            sink++;
        }
    }

    static void online(long end) {
        while (System.nanoTime() - end < 0) {
            sink++;
        }
    }

    static Runnable shop(String name, long end, Work work) {
        Labels labels = Labels.of("shop", name);
        return () -> {
            System.out.println(name + " runs");
            while (System.nanoTime() - end < 0) {
                Labels.set(labels); // what was set before the watch came is not known
                work.until(System.nanoTime() + 20_000_000L);
                try {
                    Thread.sleep(20);
                } catch (InterruptedException e) {
                    return;
                }
            }
        };
    }

    public static void main(String[] arguments) throws Exception {
        long end = System.nanoTime() + Integer.parseInt(arguments[0]) * 1_000_000_000L;
        new Thread(shop("north", end, Tagged::north), "order-processing-worker-north").start();
        new Thread(shop("south", end, Tagged::south), "order-processing-worker-south").start();
        Runnable online = shop("online", end, Tagged::online);
        try {
            Object builder = Thread.class.getMethod("ofVirtual").invoke(null);
            Class<?> type = Class.forName("java.lang.Thread$Builder");
            type.getMethod("name", String.class).invoke(builder, "visitor-of-the-online-shop");
            type.getMethod("start", Runnable.class).invoke(builder, online);
        } catch (NoSuchMethodException e) {
            new Thread(online, "visitor-of-the-online-shop").start(); // an earlier JDK
        }
    }
}
