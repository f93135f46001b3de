import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/**
 * Puts tasks: plain, with a priority, many at once, at most once, and one whose end it awaits.
 *
 * It needs JDK 11 or later and no library (Debian: default-jdk-headless):
 *
 *     javac -d build *.java && java -cp build Producer
 */
final class Producer {
    private static final int TIMEOUT_MS = 60_000;

    public static void main(String[] arguments) throws Exception {
        try (Pinpriq pinpriq = new Pinpriq(TIMEOUT_MS)) {
            // PUT returns the id of the new task. The first task creates the queue.
            System.out.println("put task " + pinpriq.ask("PUT", "java-mails", "to: ann"));

            // A lower number is more urgent; without PRIORITY it is 0. A TTL drops a task that
            // was not taken.
            pinpriq.ask("PUT", "java-mails", "to: bob", "PRIORITY", -1);
            pinpriq.ask("PUT", "java-mails", "to: eve", "PRIORITY", 9, "TTL", 60_000);

            // Looking changes nothing: each task is a list of queue, id, receipt and payload.
            List<Object> seen = new ArrayList<>();
            for (Object task : pinpriq.list("PEEK", "java-mails", "COUNT", 10)) {
                seen.add(((List<?>) task).get(3));
            }
            expect(seen, List.of("to: bob", "to: ann", "to: eve"));

            // What is sent without waiting for replies takes one round trip.
            for (int number = 0; number < 100; number++) {
                pinpriq.send("PUT", "numbers", number);
            }
            for (int number = 0; number < 100; number++) {
                pinpriq.reply();
            }
            expect(pinpriq.list("POP", "numbers", "COUNT", 1000).size(), 100);

            // If the connection breaks, send it again: the key lets both put one task. For a minute
            // this is so even if the task is done meanwhile. The reply has the id, and 1 if it is
            // new.
            Object[] order = {"PUT", "java-mails", "joe", "UNIQUE", "order 17", "WINDOW", 60_000};
            List<Object> put = pinpriq.list(order);
            expect(put.get(1), 1L);
            expect(pinpriq.list(order), List.of(put.get(0), 0L));

            // With WAIT the producer learns how its task ended. Another connection does the task.
            pinpriq.send("PUT", "urgent", "now!", "WAIT", 30_000);
            pinpriq.flush();
            try (Pinpriq worker = new Pinpriq(TIMEOUT_MS)) {
                for (Object task : worker.list("TAKE", "urgent", "WAIT", 30_000)) {
                    worker.ask("ACK", "urgent", ((List<?>) task).get(2));
                }
            }
            expect(((List<?>) pinpriq.reply()).get(1), "acked");

            expect(pinpriq.ask("QUEUE", "DROP", "java-mails"), 4L);

            // Worker.java takes from this queue.
            pinpriq.ask("PUT", "java-jobs", "to: zoe");
        }
        System.out.println("producer: ok");
    }

    private static void expect(Object seen, Object wanted) {
        if (!Objects.equals(seen, wanted)) {
            throw new IllegalStateException("expected " + wanted + " and got " + seen);
        }
    }
}
