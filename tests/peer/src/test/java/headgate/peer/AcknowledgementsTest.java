package headgate.peer;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.ConsumerBuilder;
import org.apache.pulsar.client.api.DeadLetterPolicy;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.Reader;
import org.apache.pulsar.client.api.SubscriptionType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Acknowledgements, of single messages and within batches, and what comes again. */
class AcknowledgementsTest extends ClientTest {
    private static final int BATCH = 5;
    private static final int NACK_MS = 50;

    @ParameterizedTest
    @EnumSource(value = SubscriptionType.class, mode = EnumSource.Mode.EXCLUDE, names = "Key_Shared")
    void messagesOfABatchAreAcknowledgedSingly(SubscriptionType type) throws Exception {
        try (Consumer<byte[]> consumer = acknowledging(type).subscribe()) {
            List<Message<byte[]>> messages = sentBatch(consumer);
            consumer.acknowledge(messages.get(1));
            consumer.acknowledge(messages.get(3));
        }
        try (Consumer<byte[]> consumer = acknowledging(type).subscribe()) {
            assertEquals(List.of("m0", "m2", "m4"), rest(consumer));
        }
    }

    @Test
    void cumulativelyWithinABatch() throws Exception {
        try (Consumer<byte[]> consumer = acknowledging(SubscriptionType.Exclusive).subscribe()) {
            consumer.acknowledgeCumulative(sentBatch(consumer).get(2));
        }
        try (Consumer<byte[]> consumer = acknowledging(SubscriptionType.Exclusive).subscribe()) {
            assertEquals(texts(3, BATCH), rest(consumer));
        }
    }

    @Test
    void aSharedSubscriptionHasNoCumulativeAcknowledgements() throws Exception {
        try (Consumer<byte[]> consumer = acknowledging(SubscriptionType.Shared).subscribe()) {
            Message<byte[]> last = sentBatch(consumer).get(BATCH - 1);
            assertThrows(PulsarClientException.InvalidConfigurationException.class,
                    () -> consumer.acknowledgeCumulative(last));
        }
    }

    @Test
    void aNegativeAcknowledgementBringsWhatIsLeftOfABatch() throws Exception {
        try (Consumer<byte[]> consumer = acknowledging(SubscriptionType.Shared).subscribe()) {
            List<Message<byte[]>> messages = sentBatch(consumer);
            for (Message<byte[]> message : messages.subList(0, 3)) {
                consumer.acknowledge(message);
            }
            List<Message<byte[]>> left = messages.subList(3, BATCH);
            for (int count = 1; count <= 2; count++) {
                left.forEach(consumer::negativeAcknowledge);
                left = receive(consumer, 2);
                assertEquals(texts(3, BATCH), texts(left));
                assertEquals(count, left.get(0).getRedeliveryCount());
            }
        }
    }

    @Test
    void anAcknowledgementThatDoesNotComeInTimeBringsWhatIsLeft() throws Exception {
        try (Consumer<byte[]> consumer = acknowledging(SubscriptionType.Shared)
                .ackTimeout(1, TimeUnit.SECONDS).ackTimeoutTickTime(1, TimeUnit.SECONDS).subscribe()) {
            for (Message<byte[]> message : sentBatch(consumer).subList(0, 3)) {
                consumer.acknowledge(message);
            }
            assertEquals(texts(3, BATCH), texts(receive(consumer, 2)));
        }
    }

    @Test
    void allThatIsUnacknowledgedComesAgain() throws Exception {
        try (Consumer<byte[]> shared = consumer(SubscriptionType.Shared).subscribe();
                Consumer<byte[]> exclusive = consumer(SubscriptionType.Exclusive)
                        .subscriptionName("exclusive").subscribe();
                Producer<byte[]> producer = client.newProducer().topic(topic)
                        .enableBatching(false).create()) {
            sendAll(producer, 6);
            for (Message<byte[]> message : receive(shared, 6).subList(0, 3)) {
                shared.acknowledge(message);
            }
            receive(exclusive, 6);
            shared.redeliverUnacknowledgedMessages();
            exclusive.redeliverUnacknowledgedMessages();
            List<Message<byte[]>> again = receive(shared, 3);
            assertEquals(texts(3, 6), texts(again).stream().sorted().toList());
            assertEquals(1, again.get(0).getRedeliveryCount());
            assertEquals(texts(0, 6), rest(exclusive));
        }
    }

    @Test
    void aQueueOfFiveTakesBatchesThatComeAgainInPart() throws Exception {
        try (Consumer<byte[]> consumer = acknowledging(SubscriptionType.Shared)
                .receiverQueueSize(BATCH).subscribe()) {
            for (Message<byte[]> message : sentBatch(consumer).subList(0, 4)) {
                consumer.acknowledge(message);
            }
            for (int time = 0; time < 100; time++) {
                consumer.redeliverUnacknowledgedMessages();
                assertEquals(List.of("m4"), texts(receive(consumer, 1)));
            }
        }
    }

    @Test
    void aSeekIntoABatchBeginsThere() throws Exception {
        try (Consumer<byte[]> consumer = acknowledging(SubscriptionType.Exclusive)
                .startMessageIdInclusive().subscribe()) {
            consumer.seek(sentBatch(consumer).get(2).getMessageId());
            assertEquals(texts(2, BATCH), rest(consumer));
            consumer.redeliverUnacknowledgedMessages();
            assertEquals(texts(2, BATCH), rest(consumer));
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aReaderFromWithinABatch(boolean isInclusive) throws Exception {
        try (Consumer<byte[]> consumer = acknowledging(SubscriptionType.Exclusive).subscribe()) {
            MessageId id = sentBatch(consumer).get(2).getMessageId();
            var builder = client.newReader().topic(topic).startMessageId(id);
            if (isInclusive) {
                builder.startMessageIdInclusive();
            }
            try (Reader<byte[]> reader = builder.create()) {
                assertEquals(texts(isInclusive ? 2 : 3, BATCH), rest(reader));
            }
        }
    }

    @Test
    void aDeadMessageGoesToItsTopicsFirstSubscription() throws Exception {
        String dead = topic + "-dead";
        try (Consumer<byte[]> consumer = acknowledging(SubscriptionType.Shared)
                .deadLetterPolicy(DeadLetterPolicy.builder().maxRedeliverCount(2)
                        .deadLetterTopic(dead).initialSubscriptionName("letters").build())
                .subscribe(); Producer<byte[]> producer = producer()) {
            producer.send("m0".getBytes());
            for (int delivery = 0; delivery < 3; delivery++) {
                consumer.negativeAcknowledge(receive(consumer, 1).get(0));
            }
            assertSilent(consumer);
        }
        try (Consumer<byte[]> letters = client.newConsumer().topic(dead)
                .subscriptionName("letters").subscriptionType(SubscriptionType.Shared).subscribe()) {
            assertEquals(List.of("m0"), rest(letters));
        }
    }

    @Test
    void aMessageIsReceivedLaterFromTheRetryTopic() throws Exception {
        try (Consumer<byte[]> consumer = acknowledging(SubscriptionType.Shared).enableRetry(true)
                .deadLetterPolicy(DeadLetterPolicy.builder().maxRedeliverCount(2)
                        .retryLetterTopic(topic + "-retry").deadLetterTopic(topic + "-dead")
                        .initialSubscriptionName("letters").build())
                .subscribe(); Producer<byte[]> producer = producer()) {
            producer.send("m0".getBytes());
            Message<byte[]> message = receive(consumer, 1).get(0);
            for (int count = 1; count <= 2; count++) {
                long begin = System.nanoTime();
                consumer.reconsumeLater(message, 1, TimeUnit.SECONDS);
                message = receive(consumer, 1).get(0);
                double waited = Sends.secondsSince(begin);
                assertTrue(waited >= 0.99, "it came after " + waited + " s");
                assertEquals(String.valueOf(count), message.getProperty("RECONSUMETIMES"));
            }
            consumer.reconsumeLater(message, 1, TimeUnit.SECONDS);
        }
        try (Consumer<byte[]> letters = client.newConsumer().topic(topic + "-dead")
                .subscriptionName("letters").subscriptionType(SubscriptionType.Shared).subscribe()) {
            assertEquals(List.of("m0"), rest(letters));
        }
    }

    private ConsumerBuilder<byte[]> acknowledging(SubscriptionType type) {
        return consumer(type).enableBatchIndexAcknowledgment(true).isAckReceiptEnabled(true)
                .negativeAckRedeliveryDelay(NACK_MS, TimeUnit.MILLISECONDS);
    }

    /** Send one batch, and receive it. */
    private List<Message<byte[]>> sentBatch(Consumer<byte[]> consumer) throws Exception {
        try (Producer<byte[]> producer = batching(BATCH)) {
            sendAll(producer, BATCH);
        }
        return receive(consumer, BATCH);
    }
}
