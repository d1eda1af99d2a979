package headgate.peer;

import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;

/**
 * A subscription by a pattern that comes before its namespace. Arguments: the broker's service URL
 * and admin URL.
 */
public final class Patterns {
    private static final int WAIT_SECONDS = 20;

    private Patterns() {
    }

    public static void main(String[] arguments) throws Exception {
        Cases cases = new Cases();
        Admin admin = new Admin(arguments[1]);
        try (PulsarClient client = PulsarClient.builder().serviceUrl(arguments[0]).build();
                Consumer<byte[]> consumer = client.newConsumer().subscriptionName("s")
                        .topicsPattern("persistent://public/later/.*")
                        .patternAutoDiscoveryPeriod(1, TimeUnit.SECONDS)
                        .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest)
                        .subscribe()) {
            cases.play("what is published later arrives", "found", () -> {
                admin.ask("PUT", "namespaces/public/later", "");
                try (Producer<byte[]> producer = client.newProducer()
                        .topic("persistent://public/later/orders").create()) {
                    producer.send("found".getBytes());
                }
                Message<byte[]> found = consumer.receive(WAIT_SECONDS, TimeUnit.SECONDS);
                return found == null ? "nothing" : new String(found.getData());
            });
        }
        cases.finish();
    }
}
