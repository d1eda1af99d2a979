package headgate.peer;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.ProducerAccessMode;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.PulsarClientException.ProducerBusyException;
import org.apache.pulsar.client.api.PulsarClientException.ProducerFencedException;
import org.apache.pulsar.client.api.PulsarClientException.TopicTerminatedException;
import org.apache.pulsar.client.api.Reader;
import org.apache.pulsar.client.api.SubscriptionType;
import org.junit.jupiter.api.Test;

/** Producers: access modes, names, deduplication, required encryption, and terminated topics. */
class ProducersTest extends ClientTest {
    @Test
    void anExclusiveProducerIsAlone() throws Exception {
        try (Producer<byte[]> first = making(ProducerAccessMode.Exclusive).get()) {
            assertEquals("ProducerFencedException", errorOf(making(ProducerAccessMode.Exclusive)));
            assertEquals("ProducerBusyException", errorOf(making(ProducerAccessMode.Shared)));
            first.send("one".getBytes());
        }
        making(ProducerAccessMode.Exclusive).get().close();
    }

    @Test
    void aProducerThatFencesEndsTheOthers() throws Exception {
        Producer<byte[]> first = making(ProducerAccessMode.Exclusive).get();
        Producer<byte[]> bystander = client.newProducer().topic(topic + "-bystander").create();
        CompletableFuture<Producer<byte[]>> waiting = making(ProducerAccessMode.WaitForExclusive);
        Producer<byte[]> fencing = making(ProducerAccessMode.ExclusiveWithFencing).get();
        assertEquals("ProducerFencedException", errorOf(waiting));
        assertThrows(ProducerFencedException.class, () -> first.send("two".getBytes()));
        bystander.send("on the same connection".getBytes());
        fencing.close();
        bystander.close();
    }

    @Test
    void aProducerWaitsForItsTurn() throws Exception {
        Producer<byte[]> first = making(ProducerAccessMode.Exclusive).get();
        CompletableFuture<Producer<byte[]>> waiting = making(ProducerAccessMode.WaitForExclusive);
        Thread.sleep(SILENCE_MS);
        assertFalse(waiting.isDone());
        first.close();
        try (Producer<byte[]> next = waiting.get(WAIT_SECONDS, TimeUnit.SECONDS)) {
            next.send("alone".getBytes());
        }
    }

    @Test
    void producersShareATopicButNotAName() throws Exception {
        try (Producer<byte[]> first = client.newProducer().topic(topic).producerName("p").create();
                Producer<byte[]> second = producer()) {
            assertThrows(ProducerBusyException.class,
                    () -> client.newProducer().topic(topic).producerName("p").create());
            assertFalse(second.getProducerName().equals(first.getProducerName()));
        }
    }

    @Test
    void numberedMessagesAreStoredOnce() throws Exception {
        topic = inNamespace("once", "deduplication", "true");
        try (Consumer<byte[]> consumer = consumer(SubscriptionType.Exclusive).subscribe()) {
            for (int time = 0; time < 2; time++) {
                try (Producer<byte[]> producer = client.newProducer().topic(topic)
                        .producerName("till").create()) {
                    assertEquals(time == 0 ? -1 : 9, producer.getLastSequenceId());
                    for (int number = 0; number < 10 + time; number++) {
                        producer.newMessage().sequenceId(number).value(("m" + number).getBytes()).send();
                    }
                }
            }
            assertEquals(texts(0, 11), rest(consumer));
        }
    }

    @Test
    void encryptionCanBeRequired() throws Exception {
        topic = inNamespace("encrypted", "encryptionRequired", "true");
        // The client asks again and again, for longer than its operation timeout.
        try (PulsarClient quick = PulsarClient.builder().serviceUrl(SERVICE_URL)
                .operationTimeout(3, TimeUnit.SECONDS).build()) {
            assertThrows(PulsarClientException.class, () -> quick.newProducer().topic(topic).create());
        }
        admin.ask("POST", "namespaces/public/peer-encrypted/encryptionRequired", "false");
        producer().close();
    }

    @Test
    void aTerminatedTopicTakesNothingAndIsReadToItsEnd() throws Exception {
        try (Producer<byte[]> producer = producer();
                Consumer<byte[]> consumer = consumer(SubscriptionType.Exclusive).subscribe()) {
            producer.send("last".getBytes());
            admin.terminate(topic);
            assertThrows(TopicTerminatedException.class, () -> producer.send("more".getBytes()));
            assertThrows(TopicTerminatedException.class, this::producer);
            assertFalse(consumer.hasReachedEndOfTopic());
            consumer.acknowledge(receive(consumer, 1).get(0));
            for (int turn = 0; turn < 10 * WAIT_SECONDS && !consumer.hasReachedEndOfTopic(); turn++) {
                Thread.sleep(100);
            }
            assertTrue(consumer.hasReachedEndOfTopic());
        }
        try (Reader<byte[]> reader = client.newReader().topic(topic)
                .startMessageId(MessageId.earliest).create()) {
            assertEquals(List.of("last"), rest(reader));
        }
    }

    /** A topic in a namespace of its own with a policy. */
    private static String inNamespace(String name, String policy, String value) throws Exception {
        admin.ask("PUT", "namespaces/public/peer-" + name, "");
        admin.ask("POST", "namespaces/public/peer-" + name + "/" + policy, value);
        return "persistent://public/peer-" + name + "/t";
    }

    private CompletableFuture<Producer<byte[]>> making(ProducerAccessMode mode) {
        return client.newProducer().topic(topic).accessMode(mode).createAsync();
    }
}
