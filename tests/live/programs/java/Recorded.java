import java.util.List;

/**
 * Recorded CLASS [ARGUMENT]...: CLASS, once somebody records this JVM; a busy machine takes seconds to begin that. After a minute without
 * it ends with status 3.
 */
public class Recorded {
    static boolean isRecorded(Class<?> recorder) throws Exception {
        if (!(Boolean) recorder.getMethod("isInitialized").invoke(null)) { // to ask further would initialise it
            return false;
        }
        Object one = recorder.getMethod("getFlightRecorder").invoke(null);
        return !((List<?>) recorder.getMethod("getRecordings").invoke(one)).isEmpty();
    }

    public static void main(String[] arguments) throws Exception {
        Class<?> recorder = Class.forName("jdk.jfr.FlightRecorder"); // of no JDK that -release 8 knows
        long end = System.nanoTime() + 60_000_000_000L;
        while (!isRecorded(recorder)) {
            if (System.nanoTime() > end) {
                System.exit(3);
            }
            Thread.sleep(50);
        }
        String[] rest = java.util.Arrays.copyOfRange(arguments, 1, arguments.length);
        Class.forName(arguments[0]).getMethod("main", String[].class).invoke(null, (Object) rest);
    }
}
