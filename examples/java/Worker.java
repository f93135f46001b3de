import java.io.IOException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * A worker: it renews its leases, fails what it cannot do, outlives restarts of the server, and
 * stops at SIGTERM after the current task.
 *
 * It needs JDK 11 or later and no library (Debian: default-jdk-headless):
 *
 *     javac -d build *.java && java -cp build Worker QUEUE
 */
final class Worker {
    private static final int TTR_MS = 1_000; // how long a lease lasts unless it is renewed
    private static final int WAIT_MS = 2_000; // how long to wait for a task, and so for the end
    private static final int TIMEOUT_MS = 10_000;
    private static final int PAUSE_MS = 100;
    private static final int PAUSE_MAX_MS = 5_000;
    private static final ExecutorService workers = Executors.newCachedThreadPool();

    private static volatile boolean goesOn = true;
    private static int pause = PAUSE_MS;
    private static String queue = "java-jobs";

    /** The work itself. It fails by throwing an exception. */
    private static Void handle(String payload, long attempts) throws Exception {
        if (payload.equals("slow")) {
            Thread.sleep(3 * TTR_MS / 2); // longer than the lease would last by itself
        }
        if (payload.equals("broken") || payload.equals("flaky") && attempts < 2) {
            throw new Exception("cannot do " + payload);
        }
        return null;
    }

    /** Renews the lease while a thread works. Returns how that ended. */
    private static String workOn(Pinpriq pinpriq, Object receipt, String payload, long attempts)
            throws Exception {
        Future<Void> work = workers.submit(() -> handle(payload, attempts));
        while (true) {
            try {
                work.get(TTR_MS / 3, TimeUnit.MILLISECONDS);
                pinpriq.ask("ACK", queue, receipt);
                return "acked";
            } catch (TimeoutException notYet) {
                pinpriq.ask("TOUCH", queue, receipt);
            } catch (ExecutionException failure) {
                // The settings of the queue say what follows: another try later, or none.
                String reason = failure.getCause().getMessage();
                Object state = pinpriq.ask("FAIL", queue, receipt, "REASON", reason);
                return state.equals("B") ? "buried" : "released";
            }
        }
    }

    /** Does tasks until the connection breaks or it is time to stop. */
    private static void serve(Pinpriq pinpriq) throws Exception {
        // After the third failure a task is buried: DIG or PLOW brings it back.
        pinpriq.ask("QUEUE", "SET", queue, "ATTEMPTS", 3, "BACKOFF", 20);
        while (goesOn) {
            // Without a task, an empty reply comes when the time is up.
            var taken = pinpriq.list("TAKE", queue, "WAIT", WAIT_MS, "TTR", TTR_MS, "WITHMETA");
            pause = PAUSE_MS;
            for (Object fields : taken) {
                Map<Object, Object> task = named((List<?>) fields);
                String payload = (String) task.get("payload");
                try {
                    long attempts = (Long) task.get("attempts");
                    String end = workOn(pinpriq, task.get("receipt"), payload, attempts);
                    System.out.println(payload + " " + end);
                } catch (Pinpriq.Refused refused) {
                    // The lease has ended, and the task comes again.
                    System.out.println(payload + " lost: " + refused.getMessage());
                }
            }
        }
    }

    /** What is known of a task comes as a flat list of names and values. */
    private static Map<Object, Object> named(List<?> flat) {
        Map<Object, Object> fields = new HashMap<>();
        for (int at = 0; at < flat.size(); at += 2) {
            fields.put(flat.get(at), flat.get(at + 1));
        }
        return fields;
    }

    public static void main(String[] arguments) throws Exception {
        queue = arguments.length > 0 ? arguments[0] : queue;
        Thread main = Thread.currentThread();
        Callable<Void> stop = () -> {
            goesOn = false;
            main.join();
            return null;
        };
        Runtime.getRuntime().addShutdownHook(new Thread(new FutureTask<>(stop)));
        while (goesOn) {
            try (Pinpriq pinpriq = new Pinpriq(TIMEOUT_MS)) {
                serve(pinpriq);
            } catch (IOException error) {
                System.out.println("next try in " + pause + " ms: " + error.getMessage());
                Thread.sleep(pause);
                pause = Math.min(2 * pause, PAUSE_MAX_MS);
            }
        }
        System.out.println("worker: ok");
        // A process that a signal ends would have another status than 0.
        Runtime.getRuntime().halt(0);
    }
}
