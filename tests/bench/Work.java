import java.io.RandomAccessFile;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;

/**
 * Work FILE THREADS: pieces of work of a hundredth of a second or less, 30 calls deep, a part of each of them allocation; how many each
 * thread has done stands in the file, a number of 8 bytes each, the highest byte first.
 */
public class Work {
    static volatile Object sink;

    static int deep(int depth, int unit) { return depth == 0 ? piece(unit) : deep(depth - 1, unit) + 1; }

    static int piece(int unit) {
        int total = 0;
        for (int i = 0; i < unit; i++) {
            total += i * i % 7;
            if (i % 1000 == 0) {
                sink = new byte[500];
            }
        }
        return total;
    }

    static void work(MappedByteBuffer counts, int thread) {
        for (long done = 1;; done++) {
            sink = deep(30, 100_000);
            counts.putLong(8 * thread, done);
        }
    }

    public static void main(String[] arguments) throws Exception {
        int threads = Integer.parseInt(arguments[1]);
        try (RandomAccessFile file = new RandomAccessFile(arguments[0], "rw")) {
            MappedByteBuffer counts = file.getChannel().map(FileChannel.MapMode.READ_WRITE, 0, 8L * threads);
            for (int i = 1; i < threads; i++) {
                int thread = i;
                new Thread(() -> work(counts, thread)).start();
            }
            work(counts, 0);
        }
    }
}
