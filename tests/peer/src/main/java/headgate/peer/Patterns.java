package headgate.peer;

import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.ConsumerBuilder;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.impl.MultiTopicsConsumerImpl;

/**
 * Subscriptions by a pattern: one that comes before its namespace; one that only the broker's
 * watcher keeps up to date; one that the broker does not evaluate. Arguments: the broker's service
 * URL and admin URL.
 */
public final class Patterns {
    private static final int WAIT_SECONDS = 20;

    private Patterns() {
    }

    public static void main(String[] arguments) throws Exception {
        Cases cases = new Cases();
        Admin admin = new Admin(arguments[1]);
        try (PulsarClient client = PulsarClient.builder().serviceUrl(arguments[0]).build()) {
            try (Consumer<byte[]> consumer = pattern(client, "persistent://public/later/.*")
                    .patternAutoDiscoveryPeriod(1, TimeUnit.SECONDS).subscribe()) {
                cases.play("what is published later arrives", "found", () -> {
                    admin.ask("PUT", "namespaces/public/later", "");
                    return sent(client, consumer, "persistent://public/later/orders", "found");
                });
            }
            admin.ask("PUT", "namespaces/public/w", "");
            watched(cases, admin, client);
            try (Consumer<byte[]> consumer = pattern(client, "persistent://public/w/(?!a).*")
                    .patternAutoDiscoveryPeriod(1, TimeUnit.SECONDS).subscribe()) {
                cases.play("a pattern that only the client knows", "found",
                        () -> sent(client, consumer, "persistent://public/w/known", "found"));
            }
        }
        cases.finish();
    }

    /** The client itself would look after an hour: what it finds, the broker has told it. */
    private static void watched(Cases cases, Admin admin, PulsarClient client) throws Exception {
        try (Consumer<byte[]> consumer = pattern(client, "persistent://public/w/a.*")
                .patternAutoDiscoveryPeriod(1, TimeUnit.HOURS).subscribe()) {
            String one = "persistent://public/w/a1";
            String two = "persistent://public/w/a2";
            cases.play("a new topic is watched", "one", () -> sent(client, consumer, one, "one"));
            cases.play("and a second one", "two", () -> sent(client, consumer, two, "two"));
            cases.play("a deleted topic is left", "[" + two + "]", () -> {
                admin.ask("DELETE", "persistent/public/w/a1?force=true", "");
                MultiTopicsConsumerImpl<byte[]> many = (MultiTopicsConsumerImpl<byte[]>) consumer;
                for (int turn = 0; turn < 10 * WAIT_SECONDS; turn++) {
                    if (many.getPartitions().size() == 1) {
                        break;
                    }
                    Thread.sleep(100);
                }
                return many.getPartitions().toString();
            });
        }
    }

    private static ConsumerBuilder<byte[]> pattern(PulsarClient client, String pattern) {
        return client.newConsumer().subscriptionName("s").topicsPattern(pattern)
                .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest);
    }

    private static String sent(
            PulsarClient client, Consumer<byte[]> consumer, String topic, String text)
            throws Exception {
        try (Producer<byte[]> producer = client.newProducer().topic(topic).create()) {
            producer.send(text.getBytes());
        }
        Message<byte[]> found = consumer.receive(WAIT_SECONDS, TimeUnit.SECONDS);
        return found == null ? "nothing" : new String(found.getData());
    }
}
