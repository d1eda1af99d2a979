package headgate.peer;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTimeout;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.PulsarClientException.NotAllowedException;
import org.apache.pulsar.client.api.Reader;
import org.apache.pulsar.client.api.SubscriptionType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

/** What the broker does not have fails at once, with an error that names it. */
class NotSupportedTest extends ClientTest {
    private static final Duration AT_ONCE = Duration.ofSeconds(10);
    private static final String NON_PERSISTENT = "non-persistent://public/default/t";

    @Test
    void keyShared() throws Exception {
        fails(NotAllowedException.class, "Key_Shared is not supported",
                () -> consumer(SubscriptionType.Key_Shared).subscribe());
        consumer(SubscriptionType.Shared).subscribe().close(); // the connection serves on
    }

    @Test
    void consumersOfNonPersistentTopics() {
        fails(NotAllowedException.class, "non-persistent topics are not supported",
                () -> client.newConsumer().topic(NON_PERSISTENT).subscriptionName("n").subscribe());
    }

    @Test
    void producersOfNonPersistentTopics() {
        fails(NotAllowedException.class, "non-persistent topics are not supported",
                () -> client.newProducer().topic(NON_PERSISTENT).create());
    }

    @Test
    void transactions() {
        fails(PulsarClientException.class, "", () ->
                PulsarClient.builder().serviceUrl(SERVICE_URL).enableTransaction(true).build());
    }

    @Test
    void replicatedSubscriptionsAreOrdinaryOnes() throws Exception {
        try (Consumer<byte[]> consumer = consumer(SubscriptionType.Shared)
                .replicateSubscriptionState(true).subscribe();
                Producer<byte[]> producer = producer()) {
            sendAll(producer, 3);
            assertEquals(texts(0, 3), rest(consumer));
        }
    }

    @Test
    void whatWasNeverCompactedIsReadWhole() throws Exception {
        try (Producer<byte[]> producer = producer()) {
            for (String text : texts(0, 3)) {
                producer.newMessage().key("one").value(text.getBytes()).send();
            }
        }
        try (Reader<byte[]> reader = client.newReader().topic(topic).readCompacted(true)
                .startMessageId(MessageId.earliest).create()) {
            assertEquals(texts(0, 3), rest(reader));
        }
    }

    private static void fails(Class<? extends Exception> error, String text, Executable attempt) {
        assertTimeout(AT_ONCE, () -> {
            Exception found = assertThrows(error, attempt);
            assertTrue(found.getMessage().contains(text), found.getMessage());
        });
    }
}
