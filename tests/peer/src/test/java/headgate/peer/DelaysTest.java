package headgate.peer;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.client.api.TypedMessageBuilder;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Delayed delivery, and the policies that switch it off and bound it. */
class DelaysTest extends ClientTest {
    private static final long DELAY_MS = 1_500;
    /** On a busy machine client and broker may wait for the processor. */
    private static final long LATE_MS_MAX = 2_000;

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void messagesComeWhenTheyAreDue(boolean isBatched) throws Exception {
        try (Consumer<byte[]> shared = consumer(SubscriptionType.Shared).subscribe();
                Consumer<byte[]> exclusive = consumer(SubscriptionType.Exclusive)
                        .subscriptionName("at-once").subscribe();
                Producer<byte[]> producer = client.newProducer().topic(topic)
                        .enableBatching(isBatched).create()) {
            long sentMs = System.currentTimeMillis();
            message(producer, "after").deliverAfter(DELAY_MS, TimeUnit.MILLISECONDS).send();
            message(producer, "at").deliverAt(sentMs + 2 * DELAY_MS).send();
            message(producer, "past").deliverAt(1).send();
            message(producer, "plain").send();
            assertEquals(List.of("after", "at", "past", "plain"), texts(receive(exclusive, 4)));
            assertEquals(List.of("past", "plain"), texts(receive(shared, 2)));
            for (String text : List.of("after", "at")) {
                assertEquals(List.of(text), texts(receive(shared, 1)));
                long waitedMs = System.currentTimeMillis() - sentMs;
                long delayMs = text.equals("at") ? 2 * DELAY_MS : DELAY_MS;
                assertTrue(waitedMs >= delayMs && waitedMs < delayMs + LATE_MS_MAX,
                        text + " came after " + waitedMs + " ms");
            }
        }
    }

    @Test
    void aNamespaceMaySwitchItOff() throws Exception {
        topic = inNamespace("no-delays", "{\"tickTime\": 1000, \"active\": false}");
        try (Consumer<byte[]> consumer = consumer(SubscriptionType.Shared).subscribe();
                Producer<byte[]> producer = producer()) {
            message(producer, "now").deliverAfter(1, TimeUnit.HOURS).send();
            assertEquals(List.of("now"), rest(consumer));
        }
    }

    @Test
    void aDelayBeyondTheLimitIsRefused() throws Exception {
        topic = inNamespace("short-delays",
                "{\"tickTime\": 1000, \"active\": true, \"maxDeliveryDelayInMillis\": 60000}");
        try (Consumer<byte[]> consumer = consumer(SubscriptionType.Shared).subscribe();
                Producer<byte[]> producer = producer()) {
            String connected = admin.connectedSince(topic);
            assertThrows(PulsarClientException.NotAllowedException.class,
                    () -> message(producer, "late").deliverAfter(1, TimeUnit.HOURS).send());
            message(producer, "next").send();
            assertEquals(List.of("next"), rest(consumer));
            assertEquals(connected, admin.connectedSince(topic), "the producer came back");
        }
    }

    /** A topic in a namespace of its own with a policy of delayed delivery. */
    private static String inNamespace(String name, String policy) throws Exception {
        String namespace = "public/peer-" + name;
        admin.ask("PUT", "namespaces/" + namespace, "");
        admin.ask("POST", "namespaces/" + namespace + "/delayedDelivery", policy);
        return "persistent://" + namespace + "/t";
    }

    private static TypedMessageBuilder<byte[]> message(Producer<byte[]> producer, String text) {
        return producer.newMessage().value(text.getBytes());
    }
}
