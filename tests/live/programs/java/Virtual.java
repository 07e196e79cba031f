import java.lang.reflect.Method;
import java.util.concurrent.locks.LockSupport;

/** Virtual SECONDS: virtual threads (21 and later, found by reflection) that park in the midst of calls and then work. */
public class Virtual {
    static volatile int sink;
    static volatile long end;

    static int spin(int n) {
        int total = n;
        for (int i = 0; i < 100_000; i++) {
            total += i * total % 7;
        }
        return total;
    }

    static int outer(int n) { return middle(n) + spin(n) % 2; }

    static int middle(int n) { return inner(n) + 1; }

    static int inner(int n) {
        LockSupport.parkNanos(1_000_000);
        return spin(n);
    }

    static void work() {
        while (System.nanoTime() < end) {
            sink += outer(1);
        }
    }

    public static void main(String[] arguments) throws Exception {
        end = System.nanoTime() + Long.parseLong(arguments[0]) * 1_000_000_000L;
        Method start = Thread.class.getMethod("startVirtualThread", Runnable.class);
        Thread[] threads = new Thread[4];
        for (int i = 0; i < threads.length; i++) {
            threads[i] = (Thread) start.invoke(null, (Runnable) Virtual::work);
        }
        for (Thread thread : threads) {
            thread.join();
        }
    }
}
