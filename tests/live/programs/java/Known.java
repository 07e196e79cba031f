import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.function.IntUnaryOperator;
import java.util.zip.Deflater;

/**
 * Known SECONDS [THREADS]: calls in many ways, each function from known callers only (test_java.py has the list): recursion by turns,
 * interfaces, lambdas, exceptions, reflection, locks, the library, native code. At the end: "rounds N".
 */
public class Known {
    interface Op {
        int apply(int n);
    }

    static final class Add implements Op {
        public int apply(int n) { return spin(n); }
    }

    static final class Multiply implements Op {
        public int apply(int n) { return spin(n + 1); }
    }

    static final class Xor implements Op {
        public int apply(int n) { return spin(n + 2); }
    }

    static final Op[] OPS = {new Add(), new Multiply(), new Xor()};
    static volatile int sink;
    static volatile long rounds, end;

    static int spin(int n) {
        int total = n;
        for (int i = 0; i < 300; i++) {
            total += i * total % 7;
        }
        return total;
    }

    static int even(int n) { return n == 0 ? spin(n) : odd(n - 1) + 1; }

    static int odd(int n) { return n == 0 ? spin(n) : even(n - 1) + 1; }

    static int left(int n) { return leftMiddle(n) + 1; }

    static int leftMiddle(int n) { return leftLeaf(n) * 3; }

    static int leftLeaf(int n) { return spin(n); }

    static int right(int n) { return rightMiddle(n) + 1; }

    static int rightMiddle(int n) { return rightLeaf(n) * 3; }

    static int rightLeaf(int n) { return spin(n); }

    static int interfaces(int n) {
        int total = 0;
        for (int i = 0; i < 6; i++) {
            total += OPS[(n + i) % 3].apply(n);
        }
        return total;
    }

    static int lambdas(int n) {
        IntUnaryOperator inner = x -> spin(x) + 1;
        return inner.andThen(x -> left(x)).applyAsInt(n);
    }

    static int throwing(int n) {
        try {
            return deep(n % 10 + 5);
        } catch (IllegalStateException thrown) {
            return thrown.getStackTrace().length;
        }
    }

    static int deep(int n) {
        if (n == 0) {
            throw new IllegalStateException("known");
        }
        return deep(n - 1) + 1;
    }

    static int library(int n) {
        int[] numbers = new int[200];
        for (int i = 0; i < numbers.length; i++) {
            numbers[i] = i * 7919 % 211 + n;
        }
        Arrays.sort(numbers);
        StringBuilder text = new StringBuilder();
        for (int number : numbers) {
            text.append(number);
        }
        return text.toString().hashCode() + copies(n);
    }

    static int copies(int n) {
        byte[] from = new byte[4096], to = new byte[4096];
        System.arraycopy(from, n & 7, to, 0, 4000);
        return to[5];
    }

    static int compressing(int n) {
        Deflater deflater = new Deflater();
        byte[] in = new byte[2000], out = new byte[3000];
        for (int i = 0; i < in.length; i++) {
            in[i] = (byte) (i * i + n);
        }
        deflater.setInput(in);
        deflater.finish();
        int length = deflater.deflate(out);
        deflater.end();
        return length;
    }

    static int reflecting(int n) {
        try {
            Method method = Known.class.getDeclaredMethod("reflected", int.class);
            return (Integer) method.invoke(null, n);
        } catch (ReflectiveOperationException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    static int reflected(int n) { return spin(n); }

    static synchronized int locked(int n) { return spin(n); }

    static void round(int n) {
        for (int i = 0; i < 20; i++) {
            sink += left(n) + right(n) + even(40) + interfaces(n) + lambdas(n) + locked(n);
        }
        sink += library(n) + throwing(n) + compressing(n) + reflecting(n);
    }

    static void work() {
        for (int n = 0; System.nanoTime() < end; n++) {
            round(n & 1023);
            rounds++;
        }
    }

    public static void main(String[] arguments) throws InterruptedException {
        end = System.nanoTime() + Long.parseLong(arguments[0]) * 1_000_000_000L;
        Thread[] others = new Thread[arguments.length > 1 ? Integer.parseInt(arguments[1]) - 1 : 0];
        for (int i = 0; i < others.length; i++) {
            others[i] = new Thread(Known::work, "known " + i);
            others[i].start();
        }
        work();
        for (Thread other : others) {
            other.join();
        }
        System.out.println("rounds " + rounds);
    }
}
