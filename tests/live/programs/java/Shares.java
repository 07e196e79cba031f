/**
 * Shares SECONDS [THREADS]: CPU time, 50 % in fifty(), 30 % in thirty(), 20 % in twenty(); before them a second in warm(), while a profiler
 * finds it and they are compiled. At the end: "fifty 0.5003 thirty ... twenty ...", as the clock around each call tells.
 */
public class Shares {
    static volatile int sink;

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

    static void run(int unit, long[] spent) {
        long zero = System.nanoTime();
        sink += fifty(unit);
        long one = System.nanoTime();
        sink += thirty(unit);
        long two = System.nanoTime();
        sink += twenty(unit);
        spent[0] += one - zero;
        spent[1] += two - one;
        spent[2] += System.nanoTime() - two;
    }

    static void warm(long until) {
        while (System.nanoTime() < until) {
            run(1000, new long[3]);
        }
    }

    static void work(long end, long seed, long[] spent) {
        java.util.Random lengths = new java.util.Random(seed); // of rounds, or they would be in step with samples
        while (System.nanoTime() < end) {
            run(50_000 + lengths.nextInt(100_000), spent);
        }
    }

    public static void main(String[] arguments) throws Exception {
        warm(System.nanoTime() + 1_000_000_000L);
        long end = System.nanoTime() + Long.parseLong(arguments[0]) * 1_000_000_000L;
        Thread[] others = new Thread[arguments.length > 1 ? Integer.parseInt(arguments[1]) - 1 : 0];
        long[][] spent = new long[others.length + 1][3];
        for (int i = 0; i < others.length; i++) {
            int number = i + 1;
            others[i] = new Thread(() -> work(end, number, spent[number]), "worker number " + number);
            others[i].start();
        }
        work(end, 0, spent[0]);
        double all = 0;
        double[] sums = new double[3];
        for (int i = 0; i < spent.length; i++) {
            if (i > 0) {
                others[i - 1].join();
            }
            for (int j = 0; j < 3; j++) {
                sums[j] += spent[i][j];
                all += spent[i][j];
            }
        }
        System.out.println(String.format("fifty %.4f thirty %.4f twenty %.4f", sums[0] / all, sums[1] / all, sums[2] / all));
    }
}
