package headgate.peer;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.ConsumerBuilder;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.impl.MultiTopicsConsumerImpl;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Subscriptions to several topics, and by a pattern that the broker or the client evaluates. */
class PatternsTest extends ClientTest {
    private static final String BASE = "persistent://public/peer-patterns/";

    @BeforeAll
    static void makeNamespace() throws Exception {
        admin.ask("PUT", "namespaces/public/peer-patterns", "");
    }

    @Test
    void aPatternMayComeBeforeItsNamespace() throws Exception {
        try (Consumer<byte[]> consumer = pattern("persistent://public/peer-later/.*")
                .patternAutoDiscoveryPeriod(1, TimeUnit.SECONDS).subscribe()) {
            admin.ask("PUT", "namespaces/public/peer-later", "");
            send("persistent://public/peer-later/orders", "found");
            assertEquals(List.of("found"), rest(consumer));
        }
    }

    /** The client itself would look after an hour: what it finds, the broker has told it. */
    @Test
    void theBrokerTellsWhatComesAndGoes() throws Exception {
        try (Consumer<byte[]> consumer = pattern(BASE + "a.*")
                .patternAutoDiscoveryPeriod(1, TimeUnit.HOURS).subscribe()) {
            for (String name : List.of("a1", "a2")) {
                send(BASE + name, name);
                assertEquals(List.of(name), rest(consumer));
            }
            admin.ask("DELETE", "persistent/public/peer-patterns/a1?force=true", "");
            MultiTopicsConsumerImpl<byte[]> many = (MultiTopicsConsumerImpl<byte[]>) consumer;
            for (int turn = 0; turn < 10 * WAIT_SECONDS && many.getPartitions().size() > 1; turn++) {
                Thread.sleep(100);
            }
            assertEquals(List.of(BASE + "a2"), List.copyOf(many.getPartitions()));
        }
    }

    @Test
    void aPatternThatOnlyTheClientKnows() throws Exception {
        try (Consumer<byte[]> consumer = pattern(BASE + "(?!a).*")
                .patternAutoDiscoveryPeriod(1, TimeUnit.SECONDS).subscribe()) {
            send(BASE + "known", "found");
            assertEquals(List.of("found"), rest(consumer));
        }
    }

    @Test
    void severalTopicsInOneSubscription() throws Exception {
        List<String> topics = List.of(topic + "-one", topic + "-two");
        try (Consumer<byte[]> consumer = client.newConsumer().topics(topics).subscriptionName("s")
                .subscribe()) {
            for (String name : topics) {
                send(name, name);
            }
            assertEquals(topics, rest(consumer).stream().sorted().toList());
        }
    }

    private static ConsumerBuilder<byte[]> pattern(String pattern) {
        return client.newConsumer().subscriptionName("s").topicsPattern(pattern)
                .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest);
    }

    private static void send(String name, String text) throws Exception {
        try (Producer<byte[]> producer = client.newProducer().topic(name).create()) {
            producer.send(text.getBytes());
        }
    }
}
