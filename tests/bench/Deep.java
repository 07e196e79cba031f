/**
 * Deep DEPTH SECONDS [THREADS]: one thread is busy below so many frames of compiled code, by turns of two functions; others sleep.
 */
public class Deep {
    static volatile int sink;

    static int even(int depth, int unit) { return depth == 0 ? spin(unit) : odd(depth - 1, unit) + 1; }

    static int odd(int depth, int unit) { return depth == 0 ? spin(unit) : even(depth - 1, unit) + 1; }

    static int spin(int unit) {
        int total = 0;
        for (int i = 0; i < unit; i++) {
            total += i * i % 7;
        }
        return total;
    }

    public static void main(String[] arguments) throws Exception {
        int depth = Integer.parseInt(arguments[0]);
        for (int i = arguments.length > 2 ? Integer.parseInt(arguments[2]) : 0; i > 0; i--) {
            Thread idle = new Thread(() -> {
                while (true) {
                    try {
                        Thread.sleep(1_000_000);
                    } catch (InterruptedException ended) {
                        return;
                    }
                }
            });
            idle.setDaemon(true);
            idle.start();
        }
        for (int i = 0; i < 30_000; i++) {
            sink += even(depth, 1);
        }
        long end = System.nanoTime() + Long.parseLong(arguments[1]) * 1_000_000_000L;
        while (System.nanoTime() < end) {
            sink += even(depth, 1_000_000);
        }
    }
}
