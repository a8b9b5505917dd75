import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.Constructor;
import java.nio.charset.StandardCharsets;

/**
 * Copies of a class NAME_xxxxxx under the names NAME_000000, NAME_000001 and so on, each in a loader
 * of its own, so that it can be unloaded. The names are equally long, so the rest of the class file
 * stays where it is.
 */
final class Copies {
    private static final class Loader extends ClassLoader {
        Class<?> define(byte[] bytes) {
            return defineClass(null, bytes, 0, bytes.length);
        }
    }

    private final String name;
    private final byte[] template;

    Copies(String name) throws IOException {
        this.name = name;
        try (InputStream in = Copies.class.getResourceAsStream(name + "_xxxxxx.class")) {
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            for (int b = in.read(); b >= 0; b = in.read()) {
                bytes.write(b);
            }
            template = bytes.toByteArray();
        }
    }

    /** Defines the class NAME_NUMBER. */
    Constructor<?> constructor(int number) throws NoSuchMethodException {
        Constructor<?> constructor = new Loader().define(bytes(number)).getDeclaredConstructor();
        constructor.setAccessible(true); // same package name, other loader: another package
        return constructor;
    }

    /** Its class file. */
    byte[] bytes(int number) {
        byte[] from = (name + "_xxxxxx").getBytes(StandardCharsets.US_ASCII);
        byte[] to = String.format("%s_%06d", name, number).getBytes(StandardCharsets.US_ASCII);
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
        return bytes;
    }
}
