package headgate.peer;

import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.SubscriptionType;

/** What the broker does not have fails at once. Arguments: the broker's service URL. */
public final class NotSupported {
    private static final long SECONDS_MAX = 10;

    private NotSupported() {
    }

    public static void main(String[] arguments) throws Exception {
        Cases cases = new Cases();
        String url = arguments[0];
        try (PulsarClient client = PulsarClient.builder().serviceUrl(url).build()) {
            cases.play("Key_Shared", "NotAllowedException", () -> failure(() ->
                    client.newConsumer().topic("t").subscriptionName("k")
                            .subscriptionType(SubscriptionType.Key_Shared).subscribe()));
            String other = "non-persistent://public/default/t";
            cases.play("a consumer of a non-persistent topic", "NotAllowedException",
                    () -> failure(() ->
                            client.newConsumer().topic(other).subscriptionName("n").subscribe()));
            cases.play("a producer of a non-persistent topic", "NotAllowedException",
                    () -> failure(() -> client.newProducer().topic(other).create()));
        }
        cases.play("transactions", "refused", () -> {
            String failed = failure(() ->
                    PulsarClient.builder().serviceUrl(url).enableTransaction(true).build());
            return failed.equals("nothing") || failed.endsWith("late") ? failed : "refused";
        });
        cases.finish();
    }

    /** The class of the failure, "nothing" without one; with " late" if it took long. */
    private static String failure(Callable<?> attempt) throws Exception {
        long beganNs = System.nanoTime();
        String found = "nothing";
        try {
            attempt.call();
        } catch (PulsarClientException error) {
            found = error.getClass().getSimpleName();
        }
        long seconds = TimeUnit.NANOSECONDS.toSeconds(System.nanoTime() - beganNs);
        return seconds < SECONDS_MAX ? found : found + " late";
    }
}
