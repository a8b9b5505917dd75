import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;

/**
 * Loads classes MadeN one after the other, each in a loader of its own, lets each work for some
 * time and drops it, so that the JVM unloads them and uses their memory again.
 *
 * Arguments: how many classes; how many microseconds each works (3000).
 */
public final class ComeAndGo {
    static volatile long sink;

    /** What a made class inherits: run() calls work(), which is the same code in all of them. */
    private static final class Loader extends ClassLoader {
        Class<?> define(String name, byte[] bytes) {
            return defineClass(name, bytes, 0, bytes.length);
        }
    }

    public static void main(String[] args) throws Exception {
        int count = Integer.parseInt(args[0]);
        long work = args.length > 1 ? Long.parseLong(args[1]) * 1000 : 3_000_000;
        for (int i = 0; i < count; i++) {
            String name = "Made" + i;
            Runnable made = (Runnable) new Loader().define(name, classFile(name))
                    .getDeclaredConstructor().newInstance();
            long end = System.nanoTime() + work;
            while (System.nanoTime() < end) {
                made.run();
            }
            if (i % 50 == 49) {
                System.gc();
            }
        }
    }

    /** public class NAME implements Runnable { void run() { work(); } static void work() { for (int i = 2000; i != 0; i--); } } */
    private static byte[] classFile(String name) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(bytes);
        out.writeInt(0xcafebabe);
        out.writeInt(49); // Java 5: no stack maps needed
        String[] texts = {name, "java/lang/Object", "java/lang/Runnable", "<init>", "()V", "Code", "run", "work"};
        out.writeShort(1 + texts.length + 3 + 2 + 2);
        for (String text : texts) { // 1-8
            out.writeByte(1);
            out.writeUTF(text);
        }
        for (int i = 1; i <= 3; i++) { // 9-11: classes
            out.writeByte(7);
            out.writeShort(i);
        }
        nameAndType(out, 4); // 12: <init>
        nameAndType(out, 8); // 13: work
        reference(out, 10, 12); // 14
        reference(out, 9, 13); // 15
        out.writeShort(0x21);
        out.writeShort(9);
        out.writeShort(10);
        out.writeShort(1);
        out.writeShort(11);
        out.writeShort(0);
        out.writeShort(3);
        method(out, 1, 4, 1, 1, 0x2a, 0xb7, 0, 14, 0xb1);
        method(out, 1, 7, 1, 1, 0xb8, 0, 15, 0xb1);
        // sipush 2000; istore_0; iinc 0 -1; iload_0; ifne -4; return
        method(out, 9, 8, 1, 1, 0x11, 0x07, 0xd0, 0x3b, 0x84, 0, 0xff, 0x1a, 0x9a, 0xff, 0xfc, 0xb1);
        out.writeShort(0);
        return bytes.toByteArray();
    }

    private static void nameAndType(DataOutputStream out, int name) throws IOException {
        out.writeByte(12);
        out.writeShort(name);
        out.writeShort(5);
    }

    private static void reference(DataOutputStream out, int owner, int nameAndType) throws IOException {
        out.writeByte(10);
        out.writeShort(owner);
        out.writeShort(nameAndType);
    }

    private static void method(DataOutputStream out, int access, int name, int stack, int locals,
            int... code) throws IOException {
        out.writeShort(access);
        out.writeShort(name);
        out.writeShort(5);
        out.writeShort(1);
        out.writeShort(6);
        out.writeInt(12 + code.length);
        out.writeShort(stack);
        out.writeShort(locals);
        out.writeInt(code.length);
        for (int b : code) {
            out.writeByte(b);
        }
        out.writeShort(0);
        out.writeShort(0);
    }
}
