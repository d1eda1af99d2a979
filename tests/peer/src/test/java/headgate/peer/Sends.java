package headgate.peer;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;

/** Messages that were handed to a producer at once, and what became of each. */
final class Sends {
    /** How one send ended. */
    record Outcome(String text, String error, double afterSeconds) {
        boolean isStored() {
            return error.isEmpty();
        }
    }

    private static final int WAIT_SECONDS = 60;

    final List<Outcome> outcomes = new ArrayList<>();
    private final List<CompletableFuture<Outcome>> waiting = new ArrayList<>();

    Sends(Producer<byte[]> producer, int count, int payloadBytes) {
        long begin = System.nanoTime();
        for (int number = 0; number < count; number++) {
            String text = String.format("%04d", number);
            byte[] payload = new byte[Math.max(payloadBytes, 4)];
            System.arraycopy(text.getBytes(), 0, payload, 0, 4);
            CompletableFuture<MessageId> sent = producer.sendAsync(payload);
            waiting.add(sent.handle((id, error) -> new Outcome(text, nameOf(error), secondsSince(begin))));
        }
    }

    /** Wait until all have ended. */
    Sends finish() throws Exception {
        for (CompletableFuture<Outcome> each : waiting) {
            outcomes.add(each.get(WAIT_SECONDS, TimeUnit.SECONDS));
        }
        return this;
    }

    List<String> stored() {
        return outcomes.stream().filter(Outcome::isStored).map(Outcome::text).toList();
    }

    /** The errors of those that failed. */
    Set<String> errors() {
        Set<String> found = new TreeSet<>();
        outcomes.stream().filter(each -> !each.isStored()).forEach(each -> found.add(each.error()));
        return found;
    }

    double firstFailure() {
        return outcomes.stream().filter(each -> !each.isStored())
                .mapToDouble(Outcome::afterSeconds).min().orElse(-1);
    }

    double last() {
        return outcomes.stream().mapToDouble(Outcome::afterSeconds).max().orElse(0);
    }

    static double secondsSince(long beginNanos) {
        return (System.nanoTime() - beginNanos) / 1e9;
    }

    /** What an error is called; empty without one. */
    static String nameOf(Throwable error) {
        if (error == null) {
            return "";
        }
        Throwable cause = error instanceof CompletionException ? error.getCause() : error;
        return cause.getClass().getSimpleName();
    }
}
