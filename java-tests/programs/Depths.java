import java.util.concurrent.locks.LockSupport;

/** Allocates for some seconds in two threads, "shallow" and "deep" in calls, or waits there: Depths SECONDS CALLS [waits] */
public class Depths {
    static volatile Object last;
    static boolean waits;

    static void allocate(int calls, long until) {
        if (calls > 0) {
            allocate(calls - 1, until);
        } else {
            while (System.nanoTime() - until < 0) {
                last = new byte[10_000];
                if (waits) LockSupport.parkNanos(1_000_000);
            }
        }
    }

    public static void main(String[] args) throws InterruptedException {
        waits = args.length > 2;
        long until = System.nanoTime() + Integer.parseInt(args[0]) * 1_000_000_000L;
        Thread deep = new Thread(() -> allocate(Integer.parseInt(args[1]), until), "deep");
        Thread shallow = new Thread(() -> allocate(0, until), "shallow");
        deep.start();
        shallow.start();
        deep.join();
        shallow.join();
    }
}
