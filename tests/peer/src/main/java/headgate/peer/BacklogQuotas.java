package headgate.peer;

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

/**
 * What an application with the Java client sees of backlog quotas: a line for each case on the
 * standard output, and status 1 when one is not as docs/guide/backlog-quotas-clients.md says.
 *
 * <p>Arguments: the broker's service URL and admin URL.
 */
public final class BacklogQuotas {
    private static final String HOLD = "producer_request_hold";
    private static final String REFUSE = "producer_exception";
    private static final String EVICT = "consumer_backlog_eviction";
    private static final int LIMIT_BYTES = 1_000_000;
    private static final int PAYLOAD_BYTES = 10_000;
    private static final int PARK_MILLIS = 1_000;
    private static final int OPERATION_SECONDS = 3;
    private static final String SUBSCRIPTION = "s";
    private static final String HOLD_ERROR = "ProducerBlockedQuotaExceededError";
    private static final String REFUSE_ERROR = "ProducerBlockedQuotaExceededException";

    private final Admin admin;
    private final PulsarClient client;
    private int failures;

    private BacklogQuotas(Admin admin, PulsarClient client) {
        this.admin = admin;
        this.client = client;
    }

    public static void main(String[] arguments) throws Exception {
        Admin admin = new Admin(arguments[1]);
        int failures;
        try (PulsarClient client = PulsarClient.builder().serviceUrl(arguments[0])
                .operationTimeout(OPERATION_SECONDS, TimeUnit.SECONDS).build()) {
            BacklogQuotas cases = new BacklogQuotas(admin, client);
            cases.playAll();
            failures = cases.failures;
        }
        System.out.println(failures == 0 ? "all as promised" : failures + " not as promised");
        System.exit(failures == 0 ? 0 : 1);
    }

    private void playAll() throws Exception {
        create(HOLD, HOLD_ERROR);
        create(REFUSE, REFUSE_ERROR);
        createWithRoomSoon();
        shortHold();
        admin.set("headgateHoldParkMs", PARK_MILLIS);
        longHold();
        timeoutBeyondTheHold();
        refusedWithPending();
        eviction();
    }

    // -- the cases ----------------------------------------------------------------------------

    private void create(String policy, String error) throws Exception {
        String topic = fullTopic("create-" + policy, policy);
        long begin = System.nanoTime();
        String seen = "created";
        try {
            client.newProducer().topic(topic).create();
        } catch (PulsarClientException found) {
            seen = Sends.nameOf(found);
        }
        double after = Sends.secondsSince(begin);
        tell("first creation, " + policy, "%s after %.1f s (operation timeout %d s)",
                seen, after, OPERATION_SECONDS);
        expect("the error of first creation", seen.equals(error));
    }

    private void createWithRoomSoon() throws Exception {
        String topic = fullTopic("create-soon", HOLD);
        long begin = System.nanoTime();
        CompletableFuture<Producer<byte[]>> creating = client.newProducer().topic(topic).createAsync();
        Thread.sleep(1_000);
        admin.makeRoom(topic, SUBSCRIPTION);
        String seen = Sends.nameOf(creating.handle((made, error) -> error).get(20, TimeUnit.SECONDS));
        tell("first creation, room after 1.0 s", "%s after %.1f s",
                seen.isEmpty() ? "created" : seen, Sends.secondsSince(begin));
        expect("creation is tried again", seen.isEmpty());
    }

    private void shortHold() throws Exception {
        String topic = topicAt("short-hold", HOLD);
        try (Producer<byte[]> producer = fill(topic, 30)) {
            String before = admin.connectedSince(topic);
            Sends sends = new Sends(producer, 5, 0);
            Thread.sleep(1_000);
            expect("the producer stays connected", admin.connectedSince(topic).equals(before));
            admin.makeRoom(topic, SUBSCRIPTION);
            sends.finish();
            tell("short hold of 1.0 s", "%d of 5 stored, the last after %.2f s", sends.stored().size(), sends.last());
            expect("nothing fails in a short hold", sends.stored().size() == 5);
            expect("a short hold ends with its cause", sends.last() < 3);
            expect("it is the same producer", admin.connectedSince(topic).equals(before));
        }
    }

    private void longHold() throws Exception {
        String topic = topicAt("long-hold", HOLD);
        try (Producer<byte[]> producer = fill(topic, 30)) {
            int before = all(topic).size();
            Sends sends = new Sends(producer, 5, 0);
            Thread.sleep(4_000);
            expect("a long hold closes the producer", admin.connectedSince(topic).isEmpty());
            long room = System.nanoTime();
            admin.makeRoom(topic, SUBSCRIPTION);
            sends.finish();
            tell("long hold, room after 4.0 s", "%d of 5 stored, %.1f s after there was room",
                    sends.stored().size(), Sends.secondsSince(room));
            expect("nothing fails before its send timeout", sends.stored().size() == 5);
            List<String> held = all(topic);
            expect("each is stored once, in order",
                    held.subList(before, held.size()).equals(sends.stored()));
        }
    }

    private void timeoutBeyondTheHold() throws Exception {
        String topic = topicAt("timeout", HOLD);
        try (Producer<byte[]> producer = fill(topic, 2)) {
            int before = all(topic).size();
            Sends sends = new Sends(producer, 5, 0).finish();
            tell("send timeout of 2.0 s in a long hold", "%s after %.1f s", sends.errors(), sends.firstFailure());
            expect("sends time out", sends.errors().equals(Set.of("TimeoutException")));
            admin.makeRoom(topic, SUBSCRIPTION);
            Sends later = new Sends(producer, 1, 0).finish();
            while (!later.errors().isEmpty()) {
                later = new Sends(producer, 1, 0).finish();
            }
            expect("what timed out is not stored", all(topic).size() == before + 1);
        }
    }

    private void refusedWithPending() throws Exception {
        String topic = topicAt("refused", REFUSE);
        try (Producer<byte[]> producer = producer(topic, 30)) {
            Sends sends = new Sends(producer, 300, PAYLOAD_BYTES).finish();
            tell("pending sends, " + REFUSE, "%d stored, then %s after %.2f s", sends.stored().size(),
                    sends.errors(), sends.firstFailure());
            expect("pending sends fail", sends.errors().equals(Set.of(REFUSE_ERROR)));
            expect("what was stored has a receipt", all(topic).equals(sends.stored()));
            Sends meanwhile = new Sends(producer, 1, 0);
            Thread.sleep(1_000);
            long room = System.nanoTime();
            admin.makeRoom(topic, SUBSCRIPTION);
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

    private void eviction() throws Exception {
        String topic = topicAt("evicted", EVICT);
        try (Consumer<byte[]> consumer = client.newConsumer().topic(topic).subscriptionName(SUBSCRIPTION)
                .subscriptionType(SubscriptionType.Shared).receiverQueueSize(10).subscribe();
                Producer<byte[]> producer = producer(topic, 30)) {
            Sends sends = new Sends(producer, 300, PAYLOAD_BYTES).finish();
            expect("eviction holds nobody", sends.stored().size() == 300);
            List<String> received = new ArrayList<>();
            Message<byte[]> message = consumer.receive(2, TimeUnit.SECONDS);
            while (message != null) {
                received.add(new String(message.getData(), 0, 4));
                consumer.acknowledgeAsync(message).get(10, TimeUnit.SECONDS);
                message = consumer.receive(1, TimeUnit.SECONDS);
            }
            int lost = 1;
            while (lost < received.size() && isNext(received.get(lost - 1), received.get(lost))) {
                lost++;
            }
            tell("eviction", "%d of 300 received, %s to %s, then %s; every ack well", received.size(),
                    received.get(0), received.get(lost - 1),
                    lost < received.size() ? "from " + received.get(lost) + " on" : "nothing");
            expect("what is left comes in order, once", received.equals(received.stream().distinct().sorted().toList()));
            expect("the newest messages are kept", received.get(received.size() - 1).equals("0299"));
            expect("the oldest messages are lost", received.size() < 150);
        }
    }

    // -- what they share ----------------------------------------------------------------------

    /** A new topic with a subscription that does not consume, and a quota on its namespace. */
    private String topicAt(String name, String policy) throws Exception {
        String namespace = "public/peer-" + name.replace('_', '-');
        admin.ask("PUT", "namespaces/" + namespace, "");
        admin.ask("POST", "namespaces/" + namespace + "/backlogQuota",
                "{\"limitSize\": " + LIMIT_BYTES + ", \"policy\": \"" + policy + "\"}");
        String topic = "persistent://" + namespace + "/t";
        client.newConsumer().topic(topic).subscriptionName(SUBSCRIPTION)
                .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).subscribe().close();
        return topic;
    }

    /** The same, at its limit, and without producers. */
    private String fullTopic(String name, String policy) throws Exception {
        String topic = topicAt(name, policy);
        fill(topic, 30).close();
        return topic;
    }

    private Producer<byte[]> producer(String topic, int sendTimeoutSeconds) throws PulsarClientException {
        return client.newProducer().topic(topic).enableBatching(false).blockIfQueueFull(true)
                .sendTimeout(sendTimeoutSeconds, TimeUnit.SECONDS).create();
    }

    /** A producer that has just sent as much as the quota takes. */
    private Producer<byte[]> fill(String topic, int sendTimeoutSeconds) throws Exception {
        Producer<byte[]> producer = producer(topic, sendTimeoutSeconds);
        new Sends(producer, LIMIT_BYTES / PAYLOAD_BYTES, PAYLOAD_BYTES).finish();
        return producer;
    }

    /** Every message that the topic holds. */
    private List<String> all(String topic) throws Exception {
        List<String> found = new ArrayList<>();
        try (Reader<byte[]> reader = client.newReader().topic(topic).startMessageId(MessageId.earliest).create()) {
            while (reader.hasMessageAvailable()) {
                found.add(new String(reader.readNext().getData(), 0, 4));
            }
        }
        return found;
    }

    private static boolean isNext(String text, String other) {
        return Integer.parseInt(text) + 1 == Integer.parseInt(other);
    }

    private static void tell(String name, String seen, Object... values) {
        System.out.println(name + ": " + String.format(Locale.ROOT, seen, values));
    }

    private void expect(String promise, boolean isKept) {
        if (!isKept) {
            failures++;
            System.out.println("NOT AS PROMISED: " + promise);
        }
    }
}
