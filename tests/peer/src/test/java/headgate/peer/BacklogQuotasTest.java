package headgate.peer;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.Reader;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.SubscriptionType;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Backlog quotas, as docs/guide/backlog-quotas-clients.md says; prints the times that it has. */
class BacklogQuotasTest extends ClientTest {
    private static final String HOLD = "producer_request_hold";
    private static final String REFUSE = "producer_exception";
    private static final String EVICT = "consumer_backlog_eviction";
    private static final String HOLD_ERROR = "ProducerBlockedQuotaExceededError";
    private static final String REFUSE_ERROR = "ProducerBlockedQuotaExceededException";
    private static final int LIMIT_BYTES = 1_000_000;
    private static final int PAYLOAD_BYTES = 10_000;
    private static final int PARK_MILLIS = 1_000;
    private static final int OPERATION_SECONDS = 3;
    private static final String SUBSCRIPTION = "s";

    /** The one that does not wait as long as others for an operation. */
    private static PulsarClient quick;

    @BeforeAll
    static void connectQuickly() throws PulsarClientException {
        quick = PulsarClient.builder().serviceUrl(SERVICE_URL)
                .operationTimeout(OPERATION_SECONDS, TimeUnit.SECONDS).build();
    }

    @AfterAll
    static void disconnectQuickly() throws PulsarClientException {
        quick.close();
    }

    @ParameterizedTest
    @CsvSource({HOLD + "," + HOLD_ERROR, REFUSE + "," + REFUSE_ERROR})
    void aFirstProducerIsRefused(String policy, String error) throws Exception {
        String full = fullTopic("create-" + policy, policy);
        long begin = System.nanoTime();
        assertEquals(error, errorOf(quick.newProducer().topic(full).createAsync()));
        tell("first creation, " + policy, "after %.1f s (operation timeout %d s)",
                Sends.secondsSince(begin), OPERATION_SECONDS);
    }

    @Test
    void aFirstProducerIsMadeWhenThereIsRoom() throws Exception {
        String full = fullTopic("create-soon", HOLD);
        long begin = System.nanoTime();
        CompletableFuture<Producer<byte[]>> creating = quick.newProducer().topic(full).createAsync();
        Thread.sleep(1_000);
        admin.makeRoom(full, SUBSCRIPTION);
        assertEquals("", errorOf(creating));
        tell("first creation, room after 1.0 s", "created after %.1f s", Sends.secondsSince(begin));
    }

    @Test
    void aShortHoldEndsWithItsCause() throws Exception {
        String full = topicAt("short-hold", HOLD);
        try (Producer<byte[]> producer = fill(full, 30)) {
            String before = admin.connectedSince(full);
            Sends sends = new Sends(producer, 5, 0);
            Thread.sleep(1_000);
            assertEquals(before, admin.connectedSince(full), "the producer was closed");
            admin.makeRoom(full, SUBSCRIPTION);
            sends.finish();
            tell("short hold of 1.0 s", "the last stored after %.2f s", sends.last());
            assertEquals(5, sends.stored().size());
            assertTrue(sends.last() < 3);
            assertEquals(before, admin.connectedSince(full), "the producer came back");
        }
    }

    @Test
    void aLongHoldClosesTheProducerAndLosesNothing() throws Exception {
        String full = topicAt("long-hold", HOLD);
        admin.set("headgateHoldParkMs", PARK_MILLIS);
        try (Producer<byte[]> producer = fill(full, 30)) {
            int before = all(full).size();
            Sends sends = new Sends(producer, 5, 0);
            Thread.sleep(4_000);
            assertEquals("", admin.connectedSince(full), "the producer was not closed");
            long room = System.nanoTime();
            admin.makeRoom(full, SUBSCRIPTION);
            sends.finish();
            tell("long hold, room after 4.0 s", "stored %.1f s after there was room",
                    Sends.secondsSince(room));
            assertEquals(5, sends.stored().size(), "stored before their timeout");
            List<String> held = all(full);
            assertEquals(sends.stored(), held.subList(before, held.size()), "once, in order");
        } finally {
            admin.reset("headgateHoldParkMs");
        }
    }

    @Test
    void whatTimesOutInALongHoldIsNotStored() throws Exception {
        String full = topicAt("timeout", HOLD);
        admin.set("headgateHoldParkMs", PARK_MILLIS);
        try (Producer<byte[]> producer = fill(full, 2)) {
            int before = all(full).size();
            Sends sends = new Sends(producer, 5, 0).finish();
            tell("send timeout of 2.0 s in a long hold", "after %.1f s", sends.firstFailure());
            assertEquals(Set.of("TimeoutException"), sends.errors());
            admin.makeRoom(full, SUBSCRIPTION);
            Sends later = new Sends(producer, 1, 0).finish();
            while (!later.errors().isEmpty()) {
                later = new Sends(producer, 1, 0).finish();
            }
            assertEquals(before + 1, all(full).size());
        } finally {
            admin.reset("headgateHoldParkMs");
        }
    }

    @Test
    void pendingSendsFailWhereProducersAreRefused() throws Exception {
        String full = topicAt("refused", REFUSE);
        try (Producer<byte[]> producer = producer(full, 30)) {
            Sends sends = new Sends(producer, 300, PAYLOAD_BYTES).finish();
            tell("pending sends, " + REFUSE, "%d stored, then errors after %.2f s", sends.stored().size(),
                    sends.firstFailure());
            assertEquals(Set.of(REFUSE_ERROR), sends.errors());
            assertEquals(sends.stored(), all(full), "what is stored has a receipt");
            Sends meanwhile = new Sends(producer, 1, 0);
            Thread.sleep(1_000);
            long room = System.nanoTime();
            admin.makeRoom(full, SUBSCRIPTION);
            meanwhile.finish();
            tell("a send while " + REFUSE + " holds", "%s after %.2f s",
                    meanwhile.errors().isEmpty() ? "stored" : meanwhile.errors(), meanwhile.last());
            Sends later = new Sends(producer, 1, 0).finish();
            while (!later.errors().isEmpty()) {
                Thread.sleep(20);
                later = new Sends(producer, 1, 0).finish();
            }
            tell("recovery, " + REFUSE, "%.1f s after there was room", Sends.secondsSince(room));
        }
    }

    @Test
    void evictionLosesTheOldestMessages() throws Exception {
        String full = topicAt("evicted", EVICT);
        try (Consumer<byte[]> consumer = client.newConsumer().topic(full).subscriptionName(SUBSCRIPTION)
                .subscriptionType(SubscriptionType.Shared).receiverQueueSize(10).subscribe();
                Producer<byte[]> producer = producer(full, 30)) {
            Sends sends = new Sends(producer, 300, PAYLOAD_BYTES).finish();
            assertEquals(300, sends.stored().size(), "eviction holds no producer");
            List<String> received = new ArrayList<>();
            Message<byte[]> message = consumer.receive(2, TimeUnit.SECONDS);
            while (message != null) {
                received.add(numberOf(message));
                consumer.acknowledgeAsync(message).get(WAIT_SECONDS, TimeUnit.SECONDS);
                message = consumer.receive(1, TimeUnit.SECONDS);
            }
            tell("eviction", "%d of 300 received", received.size());
            assertEquals(received.stream().distinct().sorted().toList(), received, "in order, once");
            assertEquals("0299", received.get(received.size() - 1));
            assertTrue(received.size() < 150, "the oldest are lost");
        }
    }

    /** A new topic with a subscription that does not consume, and a quota on its namespace. */
    private static String topicAt(String name, String policy) throws Exception {
        String namespace = "public/peer-" + name.replace('_', '-');
        admin.ask("PUT", "namespaces/" + namespace, "");
        admin.ask("POST", "namespaces/" + namespace + "/backlogQuota",
                "{\"limitSize\": " + LIMIT_BYTES + ", \"policy\": \"" + policy + "\"}");
        String made = "persistent://" + namespace + "/t";
        client.newConsumer().topic(made).subscriptionName(SUBSCRIPTION)
                .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).subscribe().close();
        return made;
    }

    /** The same, at its limit, and without producers. */
    private static String fullTopic(String name, String policy) throws Exception {
        String made = topicAt(name, policy);
        fill(made, 30).close();
        return made;
    }

    private static Producer<byte[]> producer(String name, int sendTimeoutSeconds)
            throws PulsarClientException {
        return client.newProducer().topic(name).enableBatching(false).blockIfQueueFull(true)
                .sendTimeout(sendTimeoutSeconds, TimeUnit.SECONDS).create();
    }

    /** A producer that has just sent as much as the quota takes. */
    private static Producer<byte[]> fill(String name, int sendTimeoutSeconds) throws Exception {
        Producer<byte[]> producer = producer(name, sendTimeoutSeconds);
        new Sends(producer, LIMIT_BYTES / PAYLOAD_BYTES, PAYLOAD_BYTES).finish();
        return producer;
    }

    /** Every message that the topic holds. */
    private static List<String> all(String name) throws Exception {
        List<String> found = new ArrayList<>();
        try (Reader<byte[]> reader = client.newReader().topic(name).startMessageId(MessageId.earliest)
                .create()) {
            while (reader.hasMessageAvailable()) {
                found.add(numberOf(reader.readNext()));
            }
        }
        return found;
    }

    /** The number that {@link Sends} wrote into a message. */
    private static String numberOf(Message<byte[]> message) {
        return new String(message.getData(), 0, 4);
    }

    private static void tell(String name, String seen, Object... values) {
        System.out.println(name + ": " + String.format(Locale.ROOT, seen, values));
    }
}
