import java.io.BufferedReader;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Reads lines "caller TAB bci TAB callee TAB count" and looks into the class files: is the bytecode
 * of the caller at that bci an invocation of a method of the callee's name? Lambda forms, hidden
 * classes and invokedynamic are left out: what they call has another name, or no class file.
 */
public final class Calls {
    private static final int FIRST_INVOKE = 0xb6, INVOKEDYNAMIC = 0xba;
    private static final Map<String, Calls> CLASSES = new HashMap<>();

    /** By "name(parameters)"; a bridge method has those of the method that it leads to. */
    private final Map<String, List<byte[]>> code = new HashMap<>();
    private int[] tags, first, second;
    private String[] text;

    public static void main(String[] args) throws IOException {
        long checked = 0, right = 0, skipped = 0;
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line; (line = in.readLine()) != null;) {
            String[] part = line.split("\t");
            long count = Long.parseLong(part[3]);
            Boolean fine = isLeftOut(part[0]) || isLeftOut(part[2]) ? null
                    : check(part[0], Integer.parseInt(part[1]), part[2]);
            if (fine == null) {
                skipped += count;
            } else {
                checked += count;
                right += fine ? count : 0;
                if (!fine) {
                    System.out.println("no call: " + line);
                }
            }
        }
        System.out.println(checked + " " + right + " " + skipped);
    }

    private static boolean isLeftOut(String method) {
        return method.startsWith("java.lang.invoke.") || method.contains("$$Lambda")
                || method.contains("/0x") || method.contains("$Proxy");
    }

    private static String nameOf(String method) {
        String upToParameters = method.substring(0, method.indexOf('('));
        int dot = upToParameters.lastIndexOf('.');
        return upToParameters.substring(dot + 1);
    }

    private static Boolean check(String caller, int bci, String callee) throws IOException {
        String head = caller.substring(0, caller.indexOf('('));
        String className = head.substring(0, head.lastIndexOf('.'));
        String method = head.substring(className.length() + 1) + caller.substring(caller.indexOf('('));
        if (!CLASSES.containsKey(className)) {
            CLASSES.put(className, read(className));
        }
        Calls known = CLASSES.get(className);
        List<byte[]> candidates = known == null ? null : known.code.get(method);
        if (candidates == null) {
            return null;
        }
        Boolean fine = false;
        for (byte[] bytes : candidates) {
            Boolean verdict = known.check(bytes, bci, nameOf(callee));
            if (verdict == null || verdict) {
                fine = verdict;
            }
        }
        return fine;
    }

    private Boolean check(byte[] bytes, int bci, String callee) {
        if (bci >= bytes.length) {
            return false;
        }
        int opcode = bytes[bci] & 0xff;
        if (opcode == INVOKEDYNAMIC) {
            return null;
        }
        if (opcode < FIRST_INVOKE || opcode > INVOKEDYNAMIC) {
            return false;
        }
        int reference = (bytes[bci + 1] & 0xff) << 8 | bytes[bci + 2] & 0xff;
        String called = text[first[second[reference]]];
        String owner = text[first[first[reference]]];
        if (owner.startsWith("java/lang/invoke/")) {
            return null;
        }
        return called.equals(callee);
    }

    private static Calls read(String className) throws IOException {
        String path = className.replace('.', '/') + ".class";
        try (InputStream in = ClassLoader.getSystemResourceAsStream(path)) {
            return in == null ? null : new Calls(new DataInputStream(in));
        }
    }

    private Calls(DataInputStream in) throws IOException {
        in.readInt();
        in.readInt();
        readConstants(in);
        skip(in, 6);
        skip(in, 2L * in.readUnsignedShort());
        for (int members = 0; members < 2; members++) {
            for (int left = in.readUnsignedShort(); left > 0; left--) {
                readMember(in);
            }
        }
    }

    private static void skip(DataInputStream in, long bytes) throws IOException {
        for (long left = bytes; left > 0;) {
            int skipped = in.skipBytes((int) Math.min(left, Integer.MAX_VALUE));
            if (skipped <= 0) {
                throw new IOException("the class file ends too soon");
            }
            left -= skipped;
        }
    }

    private void readConstants(DataInputStream in) throws IOException {
        int count = in.readUnsignedShort();
        tags = new int[count];
        first = new int[count];
        second = new int[count];
        text = new String[count];
        for (int i = 1; i < count; i++) {
            tags[i] = in.readUnsignedByte();
            switch (tags[i]) {
                case 1: text[i] = in.readUTF(); break;
                case 3: case 4: in.readInt(); break;
                case 5: case 6: in.readLong(); i++; break;
                case 7: case 8: case 16: case 19: case 20: first[i] = in.readUnsignedShort(); break;
                case 15: in.readUnsignedByte(); in.readUnsignedShort(); break;
                default: first[i] = in.readUnsignedShort(); second[i] = in.readUnsignedShort();
            }
        }
    }

    private void readMember(DataInputStream in) throws IOException {
        in.readUnsignedShort();
        String name = text[in.readUnsignedShort()];
        String descriptor = text[in.readUnsignedShort()];
        for (int left = in.readUnsignedShort(); left > 0; left--) {
            String attribute = text[in.readUnsignedShort()];
            long size = in.readInt() & 0xffffffffL;
            if (attribute.equals("Code")) {
                in.readInt();
                byte[] bytes = new byte[in.readInt()];
                in.readFully(bytes);
                skip(in, size - 8 - bytes.length);
                code.computeIfAbsent(name + parameters(descriptor), key -> new ArrayList<>())
                        .add(bytes);
            } else {
                skip(in, size);
            }
        }
    }

    /** (I[Ljava/lang/String;)V as (int, java.lang.String[]). */
    private static String parameters(String descriptor) {
        StringBuilder out = new StringBuilder("(");
        for (int at = 1; descriptor.charAt(at) != ')';) {
            int dimensions = 0;
            for (; descriptor.charAt(at) == '['; at++) {
                dimensions++;
            }
            out.append(out.length() > 1 ? ", " : "");
            if (descriptor.charAt(at) == 'L') {
                int end = descriptor.indexOf(';', at);
                out.append(descriptor.substring(at + 1, end).replace('/', '.'));
                at = end + 1;
            } else {
                String letters = "BCDFIJSZ";
                String[] names = {"byte", "char", "double", "float", "int", "long", "short", "boolean"};
                out.append(names[letters.indexOf(descriptor.charAt(at++))]);
            }
            for (; dimensions > 0; dimensions--) {
                out.append("[]");
            }
        }
        return out.append(')').toString();
    }
}
