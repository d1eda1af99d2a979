package headgate.peer;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.ProducerAccessMode;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Reader;

/**
 * What an application with the Java client sees of exclusive producers and of topics that are
 * terminated. Arguments: the broker's service URL and admin URL.
 */
public final class Producers {
    private static final int WAIT_SECONDS = 15;

    private final Admin admin;
    private final PulsarClient client;

    private Producers(Admin admin, PulsarClient client) {
        this.admin = admin;
        this.client = client;
    }

    public static void main(String[] arguments) throws Exception {
        Cases cases = new Cases();
        Admin admin = new Admin(arguments[1]);
        try (PulsarClient client = PulsarClient.builder().serviceUrl(arguments[0]).build()) {
            Producers producers = new Producers(admin, client);
            producers.playAccessModes(cases);
            producers.playTermination(cases);
        }
        cases.finish();
    }

    private void playAccessModes(Cases cases) throws Exception {
        String topic = "persistent://public/default/access-modes";
        Producer<byte[]> first = producer(topic, ProducerAccessMode.Exclusive).get();
        Producer<byte[]> bystander =
                producer(topic + "-bystander", ProducerAccessMode.Shared).get();
        first.send("one".getBytes());
        cases.play("a second exclusive producer", "ProducerFencedException",
                () -> Sends.nameOf(errorOf(producer(topic, ProducerAccessMode.Exclusive))));
        cases.play("one that shares", "ProducerBusyException",
                () -> Sends.nameOf(errorOf(producer(topic, ProducerAccessMode.Shared))));
        CompletableFuture<Producer<byte[]>> waiting =
                producer(topic, ProducerAccessMode.WaitForExclusive);
        cases.play("one that waits is not there yet", false, () -> {
            Thread.sleep(1_000);
            return waiting.isDone();
        });
        Producer<byte[]> fencing = producer(topic, ProducerAccessMode.ExclusiveWithFencing).get();
        cases.play("one that waits, when it is fenced out", "ProducerFencedException",
                () -> Sends.nameOf(errorOf(waiting)));
        cases.play("a producer that is fenced out", "ProducerFencedException",
                () -> first.send("two".getBytes()));
        cases.play("another producer of its connection", true,
                () -> bystander.send("still here".getBytes()) != null);
        CompletableFuture<Producer<byte[]>> next = producer(topic, ProducerAccessMode.WaitForExclusive);
        Thread.sleep(500);
        fencing.close();
        cases.play("one that waits gets its turn", true,
                () -> next.get(WAIT_SECONDS, TimeUnit.SECONDS).send("three".getBytes()) != null);
    }

    private void playTermination(Cases cases) throws Exception {
        String topic = "persistent://public/default/terminated";
        try (Producer<byte[]> producer = producer(topic, ProducerAccessMode.Shared).get();
                Consumer<byte[]> consumer = client.newConsumer().topic(topic).subscriptionName("s")
                        .subscribe()) {
            producer.send("last".getBytes());
            admin.terminate(topic);
            cases.play("a send to a terminated topic", "TopicTerminatedException",
                    () -> producer.send("more".getBytes()));
            cases.play("a new producer", "TopicTerminatedException",
                    () -> Sends.nameOf(errorOf(producer(topic, ProducerAccessMode.Shared))));
            cases.play("the end before the message is acknowledged", false,
                    consumer::hasReachedEndOfTopic);
            Message<byte[]> message = consumer.receive(WAIT_SECONDS, TimeUnit.SECONDS);
            consumer.acknowledge(message);
            cases.play("the end after it", true, () -> {
                for (int tries = 0; tries < 50 && !consumer.hasReachedEndOfTopic(); tries++) {
                    Thread.sleep(100);
                }
                return consumer.hasReachedEndOfTopic();
            });
        }
        try (Reader<byte[]> reader = client.newReader().topic(topic)
                .startMessageId(MessageId.earliest).create()) {
            cases.play("a reader", "last, false", () -> {
                String text = new String(reader.readNext(WAIT_SECONDS, TimeUnit.SECONDS).getData());
                return text + ", " + reader.hasMessageAvailable();
            });
        }
    }

    private CompletableFuture<Producer<byte[]>> producer(String topic, ProducerAccessMode mode) {
        return client.newProducer().topic(topic).accessMode(mode).createAsync();
    }

    private static Throwable errorOf(CompletableFuture<?> future) throws Exception {
        return future.handle((found, error) -> error).get(WAIT_SECONDS, TimeUnit.SECONDS);
    }
}
