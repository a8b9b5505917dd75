package io.jdagent;

/**
 * Labels for profiles: what a thread is working on, as the program knows it.
 *
 * <pre>{@code
 * static final Labels CART = Labels.of("request", "GET /cart");
 * …
 * Labels.set(CART);
 * try { … } finally { Labels.set(null); }
 * }</pre>
 *
 * A label stays with the thread that set it, a virtual one wherever it runs, until it sets another
 * one or none. Where no jdagent keeps a journal of threads ({@code threads=on}), {@link #set} does
 * nothing and costs next to nothing.
 */
public final class Labels {
    /** Whether a journal is kept: the agent changes it. */
    private static volatile boolean on;

    /** Looking for a function that is not there takes microseconds. */
    private static final long AGAIN_AFTER = 50_000_000;

    /**
     * The agent's functions were found, which is for good, or looked for in vain, at that time. A thread
     * may say the latter long after others have found them.
     */
    private static volatile boolean found;
    private static volatile long missed = System.nanoTime() - AGAIN_AFTER;

    static {
        try {
            on = register0();
        } catch (UnsatisfiedLinkError noAgent) {
            // One that is attached later finds this class by itself.
        }
    }

    private final long id;
    private final String text;

    private Labels(long id, String text) {
        this.id = id;
        this.text = text;
    }

    /**
     * A label of pairs of keys and values, to be kept and set many times. Of all together 1,024
     * bytes are recorded.
     *
     * @throws IllegalArgumentException if a value is missing, or a key is empty or has a '='
     */
    public static Labels of(String... keysAndValues) {
        if (keysAndValues.length == 0 || keysAndValues.length % 2 != 0) {
            throw new IllegalArgumentException("a key and its value, or several pairs of them");
        }
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < keysAndValues.length; i += 2) {
            String key = keysAndValues[i];
            if (key.isEmpty() || key.indexOf('=') >= 0) {
                throw new IllegalArgumentException("a key must not be empty, nor have a '=': " + key);
            }
            text.append(i > 0 ? "\n" : "").append(line(key)).append('=').append(line(keysAndValues[i + 1]));
        }
        long id = 0xcbf29ce484222325L; // FNV-1a: equal texts are one label, whoever makes them
        for (int i = 0; i < text.length(); i++) {
            id = (id ^ text.charAt(i)) * 0x100000001b3L;
        }
        return new Labels(id == 0 ? 1 : id, text.toString());
    }

    private static String line(String text) {
        return text.replace('\n', ' ').replace('\r', ' ').replace('\0', ' ');
    }

    /** The calling thread works on this from now on; null: on nothing that has a label. */
    public static void set(Labels label) {
        if (on) {
            tell(label);
        }
    }

    private static void tell(Labels label) {
        if (!found && System.nanoTime() - missed < AGAIN_AFTER) {
            return;
        }
        try {
            if (set0(label == null ? 0 : label.id)) {
                text0(label.id, label.text);
            }
            if (!found) {
                found = true;
            }
        } catch (UnsatisfiedLinkError notYet) {
            // HotSpot has an agent in its list once the agent's attach has ended (JvmtiExport,
            // load_agent_library), which is after it has begun its session.
            missed = System.nanoTime();
        }
    }

    /** Whether a journal is kept. */
    private static native boolean register0();

    /** Whether the journal has to be told the label's text. */
    private static native boolean set0(long id);

    private static native void text0(long id, String text);
}
