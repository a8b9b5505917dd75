import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;

/**
 * A chain of 36 methods, none inlined (run it with -XX:MaxInlineLevel=0): every stack is known. Usage: DeepChain
 * SECONDS, which are of a processor.
 */
public final class DeepChain {
    static volatile long sink;

    public static void main(String[] args) {
        ThreadMXBean clock = ManagementFactory.getThreadMXBean();
        long end = Long.parseLong(args[0]) * 1_000_000_000L;
        long sum = 0;
        while (clock.getCurrentThreadCpuTime() < end) {
            for (int i = 0; i < 1000; i++) {
                sum += m00(i);
            }
        }
        sink = sum;
    }

    static long m00(long x) { long r = m01(x + 0); return r * 31 + x; }
    static long m01(long x) { long r = m02(x + 1); return r * 31 + x; }
    static long m02(long x) { long r = m03(x + 2); return r * 31 + x; }
    static long m03(long x) { long r = m04(x + 3); return r * 31 + x; }
    static long m04(long x) { long r = m05(x + 4); return r * 31 + x; }
    static long m05(long x) { long r = m06(x + 5); return r * 31 + x; }
    static long m06(long x) { long r = m07(x + 6); return r * 31 + x; }
    static long m07(long x) { long r = m08(x + 7); return r * 31 + x; }
    static long m08(long x) { long r = m09(x + 8); return r * 31 + x; }
    static long m09(long x) { long r = m10(x + 9); return r * 31 + x; }
    static long m10(long x) { long r = m11(x + 10); return r * 31 + x; }
    static long m11(long x) { long r = m12(x + 11); return r * 31 + x; }
    static long m12(long x) { long r = m13(x + 12); return r * 31 + x; }
    static long m13(long x) { long r = m14(x + 13); return r * 31 + x; }
    static long m14(long x) { long r = m15(x + 14); return r * 31 + x; }
    static long m15(long x) { long r = m16(x + 15); return r * 31 + x; }
    static long m16(long x) { long r = m17(x + 16); return r * 31 + x; }
    static long m17(long x) { long r = m18(x + 17); return r * 31 + x; }
    static long m18(long x) { long r = m19(x + 18); return r * 31 + x; }
    static long m19(long x) { long r = m20(x + 19); return r * 31 + x; }
    static long m20(long x) { long r = m21(x + 20); return r * 31 + x; }
    static long m21(long x) { long r = m22(x + 21); return r * 31 + x; }
    static long m22(long x) { long r = m23(x + 22); return r * 31 + x; }
    static long m23(long x) { long r = m24(x + 23); return r * 31 + x; }
    static long m24(long x) { long r = m25(x + 24); return r * 31 + x; }
    static long m25(long x) { long r = m26(x + 25); return r * 31 + x; }
    static long m26(long x) { long r = m27(x + 26); return r * 31 + x; }
    static long m27(long x) { long r = m28(x + 27); return r * 31 + x; }
    static long m28(long x) { long r = m29(x + 28); return r * 31 + x; }
    static long m29(long x) { long r = m30(x + 29); return r * 31 + x; }
    static long m30(long x) { long r = m31(x + 30); return r * 31 + x; }
    static long m31(long x) { long r = m32(x + 31); return r * 31 + x; }
    static long m32(long x) { long r = m33(x + 32); return r * 31 + x; }
    static long m33(long x) { long r = m34(x + 33); return r * 31 + x; }
    static long m34(long x) { long r = m35(x + 34); return r * 31 + x; }

    static long m35(long x) {
        long sum = x;
        for (int i = 0; i < 200; i++) {
            sum += sum * i ^ x;
        }
        return sum;
    }
}
