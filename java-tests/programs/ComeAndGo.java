import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.Arrays;

/**
 * Loads classes MadeN one after the other, each in a loader of its own, lets each work for some
 * time and drops it, so that the JVM unloads them and uses their memory again.
 *
 * Arguments: how many classes; how many microseconds each works (3000); how large they are (0): eight
 * further methods with that many reads of an array, each of which runs once, and a hundred with long
 * names that never do. Prints how many classes there were, every hundred.
 */
public final class ComeAndGo {
    private static final int MORE = 8; // methods of a large class, and
    private static final int NATIVE = 100;

    /** What a made class inherits: run() calls work(), which is the same code in all of them. */
    private static final class Loader extends ClassLoader {
        Class<?> define(String name, byte[] bytes) {
            return defineClass(name, bytes, 0, bytes.length);
        }
    }

    public static void main(String[] args) throws Exception {
        int count = Integer.parseInt(args[0]);
        long work = args.length > 1 ? Long.parseLong(args[1]) * 1000 : 3_000_000;
        int reads = args.length > 2 ? Integer.parseInt(args[2]) : 0;
        // The code cache's sweeper (to JDK 19) must be able to keep up.
        int between = reads > 0 ? 10 : 50;
        for (int i = 0; i < count; i++) {
            String name = "Made" + i;
            Runnable made = (Runnable) new Loader().define(name, classFile(name, reads))
                    .getDeclaredConstructor().newInstance();
            long end = System.nanoTime() + work;
            while (System.nanoTime() < end) {
                made.run();
            }
            if (i % between == between - 1) {
                System.gc();
            }
            if (i % 100 == 99) {
                System.out.println(i + 1);
            }
        }
    }

    /**
     * public class NAME implements Runnable {
     *     NAME() { mN(); … }
     *     void run() { work(); }
     *     static void work() { for (int i = 2000; i != 0; i--); }
     *     static void mN() { int i = 0; int[] a = new int[64]; i = a[i]; … }
     *     static native void nN(long, long, …);
     * }
     */
    private static byte[] classFile(String name, int reads) throws IOException {
        int more = reads > 0 ? MORE : 0;
        int natives = reads > 0 ? NATIVE : 0;
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(bytes);
        out.writeInt(0xcafebabe);
        out.writeInt(49); // Java 5: no stack maps needed
        String[] texts = {name, "java/lang/Object", "java/lang/Runnable", "<init>", "()V", "Code", "run", "work"};
        out.writeShort(1 + texts.length + 3 + 2 + 2 + 3 * more + natives + 1);
        for (String text : texts) { // 1-8
            text(out, text);
        }
        for (int i = 1; i <= 3; i++) { // 9-11: classes
            out.writeByte(7);
            out.writeShort(i);
        }
        nameAndType(out, 4); // 12: <init>
        nameAndType(out, 8); // 13: work
        reference(out, 10, 12); // 14
        reference(out, 9, 13); // 15
        int[] create = new int[5 + 3 * more];
        int[] begin = {0x2a, 0xb7, 0, 14};
        System.arraycopy(begin, 0, create, 0, begin.length);
        for (int i = 0; i < more; i++) { // 16-18, 19-21 and so on: mN
            text(out, "m" + i);
            nameAndType(out, 16 + 3 * i);
            reference(out, 9, 17 + 3 * i);
            create[4 + 3 * i] = 0xb8;
            create[6 + 3 * i] = 18 + 3 * i;
        }
        create[create.length - 1] = 0xb1;
        int first = 16 + 3 * more;
        for (int i = 0; i < natives; i++) {
            text(out, "n" + i);
        }
        text(out, "(" + new String(new char[100]).replace('\0', 'J') + ")V");
        out.writeShort(0x21);
        out.writeShort(9);
        out.writeShort(10);
        out.writeShort(1);
        out.writeShort(11);
        out.writeShort(0);
        out.writeShort(3 + more + natives);
        method(out, 1, 4, 1, 1, create);
        method(out, 1, 7, 1, 1, 0xb8, 0, 15, 0xb1);
        // sipush 2000; istore_0; iinc 0 -1; iload_0; ifne -4; return
        method(out, 9, 8, 1, 1, 0x11, 0x07, 0xd0, 0x3b, 0x84, 0, 0xff, 0x1a, 0x9a, 0xff, 0xfc, 0xb1);
        for (int i = 0; i < more; i++) {
            method(out, 9, 16 + 3 * i, 3, 2, readsOf(reads));
        }
        for (int i = 0; i < natives; i++) {
            out.writeShort(0x109);
            out.writeShort(first + i);
            out.writeShort(first + natives);
            out.writeShort(0);
        }
        out.writeShort(0);
        return bytes.toByteArray();
    }

    /** iconst_0; istore_0; bipush 64; newarray int; astore_1; (aload_1; iload_0; iaload; istore_0) …; return */
    private static int[] readsOf(int reads) {
        int[] begin = {0x03, 0x3b, 0x10, 64, 0xbc, 10, 0x4c};
        int[] read = {0x2b, 0x1a, 0x2e, 0x3b};
        int[] code = Arrays.copyOf(begin, begin.length + reads * read.length + 1);
        for (int i = 0; i < reads; i++) {
            System.arraycopy(read, 0, code, begin.length + i * read.length, read.length);
        }
        code[code.length - 1] = 0xb1;
        return code;
    }

    private static void text(DataOutputStream out, String text) throws IOException {
        out.writeByte(1);
        out.writeUTF(text);
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
