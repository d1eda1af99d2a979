package headgate.peer;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.ConsumerBuilder;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.Reader;
import org.apache.pulsar.client.api.SubscriptionType;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.TestInfo;

/** What the tests share: a client of the broker that the system properties name, and its messages. */
abstract class ClientTest {
    /** How long a message may take that has to come. */
    static final int WAIT_SECONDS = 15;

    /** How long the tests listen for a message that must not come. */
    static final int SILENCE_MS = 500;

    static final String SERVICE_URL = System.getProperty("headgate.serviceUrl");

    static PulsarClient client;
    static Admin admin;

    /** A topic of the test's own. */
    String topic;

    @BeforeAll
    static void connect() throws PulsarClientException {
        client = PulsarClient.builder().serviceUrl(SERVICE_URL).build();
        admin = new Admin(System.getProperty("headgate.adminUrl"));
    }

    @AfterAll
    static void disconnect() throws PulsarClientException {
        client.close();
    }

    @BeforeEach
    void nameTopic(TestInfo info) {
        String name = info.getTestClass().orElseThrow().getSimpleName() + "-"
                + info.getTestMethod().orElseThrow().getName() + "-" + info.getDisplayName();
        topic = "persistent://public/default/" + name.replaceAll("\\W+", "-");
    }

    /** Send m0, m1 and so on, and return their ids. */
    static List<MessageId> sendAll(Producer<byte[]> producer, int count) throws Exception {
        List<CompletableFuture<MessageId>> sent = new ArrayList<>();
        for (int number = 0; number < count; number++) {
            sent.add(producer.sendAsync(("m" + number).getBytes()));
        }
        producer.flush();
        List<MessageId> ids = new ArrayList<>();
        for (CompletableFuture<MessageId> each : sent) {
            ids.add(each.get(WAIT_SECONDS, TimeUnit.SECONDS));
        }
        return ids;
    }

    /** What {@link #sendAll} sends, from a number on. */
    static List<String> texts(int begin, int end) {
        return IntStream.range(begin, end).mapToObj(number -> "m" + number).toList();
    }

    /** The next messages, which have to come. */
    static List<Message<byte[]>> receive(Consumer<byte[]> consumer, int count) throws Exception {
        List<Message<byte[]>> found = new ArrayList<>();
        while (found.size() < count) {
            Message<byte[]> message = consumer.receive(WAIT_SECONDS, TimeUnit.SECONDS);
            assertNotNull(message, "only " + texts(found) + " came");
            found.add(message);
        }
        return found;
    }

    /** What comes until nothing comes for a while; the first has to come. */
    static List<String> rest(Consumer<byte[]> consumer) throws Exception {
        List<String> found = new ArrayList<>();
        Message<byte[]> message = consumer.receive(WAIT_SECONDS, TimeUnit.SECONDS);
        while (message != null) {
            found.add(text(message));
            message = consumer.receive(SILENCE_MS, TimeUnit.MILLISECONDS);
        }
        return found;
    }

    /** Everything that a reader has to read. */
    static List<String> rest(Reader<byte[]> reader) throws Exception {
        List<String> found = new ArrayList<>();
        while (reader.hasMessageAvailable()) {
            found.add(text(reader.readNext(WAIT_SECONDS, TimeUnit.SECONDS)));
        }
        return found;
    }

    static void assertSilent(Consumer<byte[]> consumer) throws Exception {
        Message<byte[]> message = consumer.receive(SILENCE_MS, TimeUnit.MILLISECONDS);
        assertEquals(null, message == null ? null : text(message));
    }

    static List<String> texts(List<Message<byte[]>> messages) {
        return messages.stream().map(ClientTest::text).toList();
    }

    static String text(Message<byte[]> message) {
        return new String(message.getData());
    }

    /** A consumer of the test's topic, on the subscription {@code s}. */
    ConsumerBuilder<byte[]> consumer(SubscriptionType type) {
        return client.newConsumer().topic(topic).subscriptionName("s").subscriptionType(type);
    }

    Producer<byte[]> producer() throws PulsarClientException {
        return client.newProducer().topic(topic).create();
    }

    /** A producer of batches of so many messages. */
    Producer<byte[]> batching(int count) throws PulsarClientException {
        return client.newProducer().topic(topic).batchingMaxMessages(count)
                .batchingMaxPublishDelay(WAIT_SECONDS, TimeUnit.SECONDS).create();
    }

    /** The name of the error that a future ends with; empty without one. */
    static String errorOf(CompletableFuture<?> future) throws Exception {
        return Sends.nameOf(future.handle((found, error) -> error).get(WAIT_SECONDS, TimeUnit.SECONDS));
    }
}
