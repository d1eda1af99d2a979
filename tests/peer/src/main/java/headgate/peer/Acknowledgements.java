package headgate.peer;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.ConsumerBuilder;
import org.apache.pulsar.client.api.DeadLetterPolicy;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Reader;
import org.apache.pulsar.client.api.SubscriptionType;

/** Acknowledgements of messages of batches. Arguments: the broker's service URL and admin URL. */
public final class Acknowledgements {
    private static final int BATCH = 5;
    private static final int WAIT_SECONDS = 15;
    private static final int SILENCE_MS = 500;

    private final PulsarClient client;

    private Acknowledgements(PulsarClient client) {
        this.client = client;
    }

    public static void main(String[] arguments) throws Exception {
        Cases cases = new Cases();
        try (PulsarClient client = PulsarClient.builder().serviceUrl(arguments[0]).build()) {
            new Acknowledgements(client).play(cases);
        }
        cases.finish();
    }

    private void play(Cases cases) {
        for (SubscriptionType type : List.of(SubscriptionType.Shared, SubscriptionType.Exclusive,
                SubscriptionType.Failover)) {
            cases.play(type + ": messages of a batch are acknowledged singly", "[m0, m2, m4]",
                    () -> twice("acks-" + type, type, (consumer, messages) -> {
                        consumer.acknowledge(messages.get(1));
                        consumer.acknowledge(messages.get(3));
                    }));
        }
        cases.play("cumulatively within a batch", "[m3, m4]",
                () -> twice("acks-cumulative", SubscriptionType.Exclusive,
                        (consumer, messages) -> consumer.acknowledgeCumulative(messages.get(2))));
        cases.play("a negative acknowledgement brings what is left", "[m3, m4]", this::nacked);
        cases.play("an acknowledgement that does not come in time, too", "[m3, m4]", this::timedOut);
        cases.play("a seek into a batch begins there", "[m2, m3, m4]", this::sought);
        cases.play("a queue of five takes batches that come again in part", "100 of m4", this::small);
        cases.play("a dead message goes to its topic's first subscription", "m0", this::died);
        cases.play("a reader from within a batch", "[m3, m4]", () -> read(false));
        cases.play("... and inclusive", "[m2, m3, m4]", () -> read(true));
    }

    /** What is done between two consumers. */
    private interface Work {
        void of(Consumer<byte[]> consumer, List<Message<byte[]>> messages) throws Exception;
    }

    private List<String> twice(String topic, SubscriptionType type, Work work) throws Exception {
        try (Consumer<byte[]> consumer = consumer(topic, type).subscribe()) {
            send(topic);
            work.of(consumer, receive(consumer));
        }
        try (Consumer<byte[]> consumer = consumer(topic, type).subscribe()) {
            return rest(consumer);
        }
    }

    private List<String> nacked() throws Exception {
        try (Consumer<byte[]> consumer = consumer("acks-nack", SubscriptionType.Shared)
                .negativeAckRedeliveryDelay(100, TimeUnit.MILLISECONDS).subscribe()) {
            send("acks-nack");
            List<Message<byte[]>> messages = receive(consumer);
            for (Message<byte[]> message : messages.subList(0, 3)) {
                consumer.acknowledge(message);
            }
            messages.subList(3, BATCH).forEach(consumer::negativeAcknowledge);
            return rest(consumer);
        }
    }

    private List<String> timedOut() throws Exception {
        try (Consumer<byte[]> consumer = consumer("acks-late", SubscriptionType.Shared)
                .ackTimeout(1, TimeUnit.SECONDS).ackTimeoutTickTime(1, TimeUnit.SECONDS).subscribe()) {
            send("acks-late");
            for (Message<byte[]> message : receive(consumer).subList(0, 3)) {
                consumer.acknowledge(message);
            }
            List<String> found = rest(consumer);
            return found.subList(0, Math.min(found.size(), 2));
        }
    }

    private List<String> sought() throws Exception {
        try (Consumer<byte[]> consumer = consumer("acks-seek", SubscriptionType.Exclusive)
                .startMessageIdInclusive().subscribe()) {
            send("acks-seek");
            consumer.seek(receive(consumer).get(2).getMessageId());
            List<String> found = rest(consumer);
            consumer.redeliverUnacknowledgedMessages();
            return found.equals(rest(consumer)) ? found : List.of("not the same again");
        }
    }

    private String small() throws Exception {
        try (Consumer<byte[]> consumer = consumer("acks-small", SubscriptionType.Shared)
                .receiverQueueSize(BATCH).subscribe()) {
            send("acks-small");
            for (Message<byte[]> message : receive(consumer).subList(0, 4)) {
                consumer.acknowledge(message);
            }
            int count = 0;
            while (count < 100) {
                consumer.redeliverUnacknowledgedMessages();
                Message<byte[]> message = consumer.receive(WAIT_SECONDS, TimeUnit.SECONDS);
                if (message == null || !text(message).equals("m4")) {
                    return count + ", then " + (message == null ? "nothing" : text(message));
                }
                count++;
            }
            return count + " of m4";
        }
    }

    private String died() throws Exception {
        try (Consumer<byte[]> consumer = consumer("acks-dying", SubscriptionType.Shared)
                .negativeAckRedeliveryDelay(50, TimeUnit.MILLISECONDS)
                .deadLetterPolicy(DeadLetterPolicy.builder().maxRedeliverCount(2)
                        .deadLetterTopic("acks-dead").initialSubscriptionName("letters").build())
                .subscribe();
                Producer<byte[]> producer = client.newProducer().topic("acks-dying").create()) {
            producer.send("m0".getBytes());
            for (int delivery = 0; delivery < 3; delivery++) {
                consumer.negativeAcknowledge(consumer.receive(WAIT_SECONDS, TimeUnit.SECONDS));
            }
            if (consumer.receive(SILENCE_MS, TimeUnit.MILLISECONDS) != null) {
                return "a fourth delivery";
            }
        }
        try (Consumer<byte[]> letters = client.newConsumer().topic("acks-dead")
                .subscriptionName("letters").subscriptionType(SubscriptionType.Shared).subscribe()) {
            Message<byte[]> found = letters.receive(WAIT_SECONDS, TimeUnit.SECONDS);
            return found == null ? "nothing" : text(found);
        }
    }

    private List<String> read(boolean inclusive) throws Exception {
        String topic = "acks-read-" + inclusive;
        try (Consumer<byte[]> consumer = consumer(topic, SubscriptionType.Exclusive).subscribe()) {
            send(topic);
            MessageId id = receive(consumer).get(2).getMessageId();
            var builder = client.newReader().topic(topic).startMessageId(id);
            if (inclusive) {
                builder.startMessageIdInclusive();
            }
            try (Reader<byte[]> reader = builder.create()) {
                List<String> found = new ArrayList<>();
                while (reader.hasMessageAvailable()) {
                    found.add(text(reader.readNext(WAIT_SECONDS, TimeUnit.SECONDS)));
                }
                return found;
            }
        }
    }

    private ConsumerBuilder<byte[]> consumer(String topic, SubscriptionType type) {
        return client.newConsumer().topic(topic).subscriptionName("s").subscriptionType(type)
                .enableBatchIndexAcknowledgment(true).isAckReceiptEnabled(true);
    }

    private void send(String topic) throws Exception {
        try (Producer<byte[]> producer = client.newProducer().topic(topic)
                .batchingMaxMessages(BATCH).batchingMaxPublishDelay(5, TimeUnit.SECONDS).create()) {
            for (int number = 0; number < BATCH; number++) {
                producer.sendAsync(("m" + number).getBytes());
            }
            producer.flush();
        }
    }

    private static List<Message<byte[]>> receive(Consumer<byte[]> consumer) throws Exception {
        List<Message<byte[]>> found = new ArrayList<>();
        while (found.size() < BATCH) {
            found.add(consumer.receive(WAIT_SECONDS, TimeUnit.SECONDS));
        }
        return found;
    }

    /** What comes until nothing comes for a while. */
    private static List<String> rest(Consumer<byte[]> consumer) throws Exception {
        List<String> found = new ArrayList<>();
        Message<byte[]> message = consumer.receive(WAIT_SECONDS, TimeUnit.SECONDS);
        while (message != null) {
            found.add(text(message));
            message = consumer.receive(SILENCE_MS, TimeUnit.MILLISECONDS);
        }
        return found;
    }

    private static String text(Message<byte[]> message) {
        return new String(message.getData());
    }
}
