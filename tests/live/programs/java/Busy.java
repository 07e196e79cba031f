/**
 * Busy SECONDS: two threads that allocate, a quarter of it in small() and three quarters in big(), wait for each other's lock, and sleep
 * more than half of the time; at the end "done", so that what else is on standard output is no word of the program's.
 */
public class Busy {
    static final Object LOCK = new Object();
    static volatile Object sink;

    static void allocate(int count) {
        for (int i = 0; i < count; i++) {
            sink = new byte[1000];
        }
    }

    static void small() { allocate(100); }

    static void big() { allocate(300); }

    static void hold() {
        synchronized (LOCK) {
            long end = System.nanoTime() + 3_000_000;
            while (System.nanoTime() < end) {
                sink = LOCK;
            }
        }
    }

    static void work(long end) throws InterruptedException {
        while (System.nanoTime() < end) {
            for (int i = 0; i < 20; i++) {
                small();
                big();
            }
            hold();
            Thread.sleep(10);
        }
    }

    static void other(long end) {
        try {
            work(end);
        } catch (InterruptedException never) {
            throw new IllegalStateException(never);
        }
    }

    public static void main(String[] arguments) throws Exception {
        long end = System.nanoTime() + (long) (Double.parseDouble(arguments[0]) * 1e9);
        Thread other = new Thread(() -> other(end), "the other thread");
        other.start();
        work(end);
        other.join();
        System.out.println("done");
    }
}
