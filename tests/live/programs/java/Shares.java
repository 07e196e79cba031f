/**
 * Shares SECONDS: CPU time, 50 % in fifty(), 30 % in thirty(), 20 % in twenty(); before them a second in warm(), while a profiler
 * finds it and they are compiled. At the end: "fifty 0.5003 thirty ... twenty ...", as the clock around each call tells.
 */
public class Shares {
    static volatile int sink;
    static final long[] SPENT = new long[3];

    static int fifty(int unit) {
        int total = 0;
        for (int i = 0; i < unit * 5; i++) {
            total += i * i % 7;
        }
        return total;
    }

    static int thirty(int unit) {
        int total = 0;
        for (int i = 0; i < unit * 3; i++) {
            total += i * i % 7;
        }
        return total;
    }

    static int twenty(int unit) {
        int total = 0;
        for (int i = 0; i < unit * 2; i++) {
            total += i * i % 7;
        }
        return total;
    }

    static void run(int unit) {
        long zero = System.nanoTime();
        sink += fifty(unit);
        long one = System.nanoTime();
        sink += thirty(unit);
        long two = System.nanoTime();
        sink += twenty(unit);
        SPENT[0] += one - zero;
        SPENT[1] += two - one;
        SPENT[2] += System.nanoTime() - two;
    }

    static void warm(long until) {
        while (System.nanoTime() < until) {
            run(1000);
        }
    }

    public static void main(String[] arguments) {
        warm(System.nanoTime() + 1_000_000_000L);
        SPENT[0] = SPENT[1] = SPENT[2] = 0;
        long end = System.nanoTime() + Long.parseLong(arguments[0]) * 1_000_000_000L;
        java.util.Random lengths = new java.util.Random(1); // of rounds, or they would be in step with samples
        while (System.nanoTime() < end) {
            run(50_000 + lengths.nextInt(100_000));
        }
        double all = SPENT[0] + SPENT[1] + SPENT[2];
        System.out.println(String.format("fifty %.4f thirty %.4f twenty %.4f", SPENT[0] / all, SPENT[1] / all, SPENT[2] / all));
    }
}
