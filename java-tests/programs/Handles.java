import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.function.IntBinaryOperator;
import java.util.function.IntUnaryOperator;

/** Calls by handles and lambdas of many kinds and signatures; prints "ready" and waits. */
public class Handles {
    interface Shape {
        int area(int scale);
    }

    static final class Square implements Shape {
        private final int side;

        Square(int side) {
            this.side = side;
        }

        public int area(int scale) {
            return side * scale;
        }
    }

    static int add(int a, int b) {
        return a + b;
    }

    static long mix(long a, int b, Object c) {
        return a * 31 + b + c.hashCode();
    }

    private int own(int x) {
        return x + 1;
    }

    public static void main(String[] args) throws Throwable {
        MethodHandles.Lookup lookup = MethodHandles.lookup();
        MethodHandle add =
                lookup.findStatic(Handles.class, "add", MethodType.methodType(int.class, int.class, int.class));
        MethodHandle mix = lookup.findStatic(Handles.class, "mix",
                MethodType.methodType(long.class, long.class, int.class, Object.class));
        MethodHandle area = lookup.findVirtual(Shape.class, "area", MethodType.methodType(int.class, int.class));
        MethodHandle own = lookup.findSpecial(
                Handles.class, "own", MethodType.methodType(int.class, int.class), Handles.class);
        MethodHandle length = lookup.findVirtual(String.class, "length", MethodType.methodType(int.class));
        MethodHandle both = MethodHandles.filterReturnValue(add, MethodHandles.insertArguments(add, 0, 5));
        IntBinaryOperator sum = Integer::sum;
        IntUnaryOperator next = x -> x + 1;
        Handles me = new Handles();
        Shape square = new Square(3);
        long result = 0;
        for (int i = 0; i < 40_000; i++) {
            result += (int) add.invokeExact(i, 1);
            result += (long) mix.invokeExact(result, i, (Object) "x");
            result += (int) area.invokeExact(square, i);
            result += (int) own.invokeExact(me, i);
            result += (int) length.invokeExact("abc" + i);
            result += (int) both.invokeExact(i, 2);
            result += sum.applyAsInt(i, next.applyAsInt(i));
        }
        System.out.println("ready " + result);
        System.in.read();
    }
}
