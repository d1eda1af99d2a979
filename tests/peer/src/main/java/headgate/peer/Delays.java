package headgate.peer;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.client.api.TypedMessageBuilder;

/**
 * What an application with the Java client sees of delays, which Headgate does not have: the send
 * ends at once with an error, and the messages before and after it are stored as ever. Arguments:
 * the broker's service URL and admin URL.
 */
public final class Delays {
    private static final int WAIT_SECONDS = 15;
    private static final int QUICK_SECONDS = 5;
    private static final int ROUND = 20;
    private static final String REFUSED = "NotAllowedException";

    private final Admin admin;
    private final PulsarClient client;

    private Delays(Admin admin, PulsarClient client) {
        this.admin = admin;
        this.client = client;
    }

    public static void main(String[] arguments) throws Exception {
        Cases cases = new Cases();
        Admin admin = new Admin(arguments[1]);
        try (PulsarClient client = PulsarClient.builder().serviceUrl(arguments[0]).build()) {
            Delays delays = new Delays(admin, client);
            delays.play(cases, false);
            delays.play(cases, true);
        }
        cases.finish();
    }

    private void play(Cases cases, boolean isBatched) throws Exception {
        String kind = isBatched ? "batched, " : "single, ";
        String topic = "persistent://public/default/delays-" + isBatched;
        try (Consumer<byte[]> consumer = client.newConsumer().topic(topic).subscriptionName("s")
                        .subscriptionType(SubscriptionType.Shared).subscribe();
                Producer<byte[]> producer = client.newProducer().topic(topic)
                        .enableBatching(isBatched).create()) {
            producer.send("first".getBytes());
            String connected = admin.connectedSince(topic);
            cases.play(kind + "deliverAfter", REFUSED,
                    () -> late(producer).deliverAfter(1, TimeUnit.HOURS).send());
            cases.play(kind + "deliverAt", REFUSED,
                    () -> late(producer).deliverAt(Long.MAX_VALUE).send());
            cases.play(kind + "among others, in seconds", true, () -> {
                long begin = System.nanoTime();
                List<CompletableFuture<MessageId>> plain = new ArrayList<>();
                List<CompletableFuture<MessageId>> delayed = new ArrayList<>();
                for (int number = 0; number < ROUND; number++) {
                    plain.add(producer.sendAsync(("m" + number).getBytes()));
                    delayed.add(late(producer).deliverAfter(1, TimeUnit.HOURS).sendAsync());
                }
                for (CompletableFuture<MessageId> each : plain) {
                    each.get(WAIT_SECONDS, TimeUnit.SECONDS);
                }
                for (CompletableFuture<MessageId> each : delayed) {
                    String error = each.handle((id, e) -> Sends.nameOf(e)).get(WAIT_SECONDS, TimeUnit.SECONDS);
                    if (!REFUSED.equals(error)) {
                        return error;
                    }
                }
                return Sends.secondsSince(begin) < QUICK_SECONDS;
            });
            cases.play(kind + "the producer never came back", connected,
                    () -> admin.connectedSince(topic));
            cases.play(kind + "what arrives", 1 + ROUND, () -> {
                int count = 0;
                Message<byte[]> found;
                while ((found = consumer.receive(1, TimeUnit.SECONDS)) != null) {
                    if ("late".equals(new String(found.getData()))) {
                        return "a delayed one";
                    }
                    count++;
                }
                return count;
            });
        }
    }

    private static TypedMessageBuilder<byte[]> late(Producer<byte[]> producer) {
        return producer.newMessage().value("late".getBytes());
    }
}
