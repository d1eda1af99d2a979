package headgate.peer;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.PulsarClientException.ConsumerBusyException;
import org.apache.pulsar.client.api.SubscriptionType;
import org.junit.jupiter.api.Test;

/** Types of subscriptions, who gets what, properties, and unsubscribing. */
class SubscriptionsTest extends ClientTest {
    @Test
    void exclusiveMeansOne() throws Exception {
        try (Producer<byte[]> producer = producer()) {
            Consumer<byte[]> first = consumer(SubscriptionType.Exclusive).subscribe();
            assertThrows(ConsumerBusyException.class,
                    () -> consumer(SubscriptionType.Exclusive).subscribe());
            assertThrows(ConsumerBusyException.class, () -> consumer(SubscriptionType.Shared).subscribe());
            sendAll(producer, 3);
            assertEquals(texts(0, 3), rest(first));
            first.close();
            try (Consumer<byte[]> next = consumer(SubscriptionType.Exclusive).subscribe()) {
                assertEquals(texts(0, 3), rest(next));
            }
        }
    }

    @Test
    void sharedGivesEachMessageToOne() throws Exception {
        List<Consumer<byte[]>> consumers = new ArrayList<>();
        for (int number = 0; number < 3; number++) {
            consumers.add(consumer(SubscriptionType.Shared).receiverQueueSize(20).subscribe());
        }
        try (Producer<byte[]> producer = client.newProducer().topic(topic).enableBatching(false).create()) {
            sendAll(producer, 90);
        }
        consumers.remove(0).close(); // what it holds goes to the others
        List<String> found = new ArrayList<>();
        for (int turn = 0; turn < 10 * WAIT_SECONDS && found.size() < 90; turn++) {
            for (Consumer<byte[]> consumer : consumers) {
                Message<byte[]> message;
                while ((message = consumer.receive(20, TimeUnit.MILLISECONDS)) != null) {
                    found.add(text(message));
                    consumer.acknowledge(message);
                }
            }
        }
        assertEquals(90, found.size());
        assertEquals(new HashSet<>(texts(0, 90)), new HashSet<>(found));
        for (Consumer<byte[]> consumer : consumers) {
            consumer.close();
        }
    }

    @Test
    void sharedPrefersTheConsumersOfTheHighestPriority() throws Exception {
        try (Consumer<byte[]> low = consumer(SubscriptionType.Shared).priorityLevel(1).subscribe();
                Consumer<byte[]> high = consumer(SubscriptionType.Shared).priorityLevel(0)
                        .receiverQueueSize(10).subscribe();
                Producer<byte[]> producer = client.newProducer().topic(topic)
                        .enableBatching(false).create()) {
            sendAll(producer, 10);
            sendAll(producer, 5); // the queue of the first is full
            assertEquals(texts(0, 10), texts(receive(high, 10)));
            assertEquals(texts(0, 5), rest(low));
        }
    }

    @Test
    void failoverGoesToTheNextNameAndPriority() throws Exception {
        admin.ask("PUT", topic.replace("://", "/") + "/partitions", "1");
        Consumer<byte[]> later = failover("a", 1);
        Consumer<byte[]> second = failover("c", 0);
        Consumer<byte[]> first = failover("b", 0);
        try (Producer<byte[]> producer = producer()) {
            for (Consumer<byte[]> active : List.of(first, second, later)) {
                awaitActive(active.getConsumerName());
                sendAll(producer, 3);
                List<Message<byte[]>> found = receive(active, 3);
                assertEquals(texts(0, 3), texts(found));
                active.acknowledgeCumulative(found.get(2));
                active.close();
            }
        }
    }

    @Test
    void propertiesOfASubscription() throws Exception {
        try (Consumer<byte[]> consumer = consumer(SubscriptionType.Shared)
                .subscriptionProperties(Map.of("owner", "team")).subscribe()) {
            String path = topic.replace("://", "/") + "/subscription/s/properties";
            assertEquals("{\"owner\":\"team\"}", admin.ask("GET", path, "").replaceAll("\\s", ""));
        }
    }

    @Test
    void unsubscribingForgets() throws Exception {
        try (Producer<byte[]> producer = producer()) {
            Consumer<byte[]> consumer = consumer(SubscriptionType.Exclusive).subscribe();
            sendAll(producer, 3);
            consumer.unsubscribe();
            try (Consumer<byte[]> again = consumer(SubscriptionType.Exclusive).subscribe()) {
                producer.send("new".getBytes());
                assertEquals(List.of("new"), rest(again));
            }
        }
    }

    @Test
    void aConsumerDoesNotUnsubscribeUnderAnother() throws Exception {
        try (Consumer<byte[]> one = consumer(SubscriptionType.Shared).subscribe();
                Consumer<byte[]> two = consumer(SubscriptionType.Shared).subscribe()) {
            assertThrows(PulsarClientException.class, one::unsubscribe);
            assertTrue(two.isConnected());
        }
    }

    @Test
    void whatIsNotThereAndMayNotBeMade() {
        for (String name : List.of("persistent://peer-nobody/here/t",
                "persistent://headgate/telemetry/samples")) {
            assertThrows(PulsarClientException.class, () -> client.newProducer().topic(name).create());
        }
    }

    private Consumer<byte[]> failover(String name, int level) throws PulsarClientException {
        return client.newConsumer().topic(topic + "-partition-0").subscriptionName("s")
                .subscriptionType(SubscriptionType.Failover).consumerName(name).priorityLevel(level)
                .subscribe();
    }

    private void awaitActive(String name) throws Exception {
        Set<String> seen = new HashSet<>();
        for (int turn = 0; turn < 10 * WAIT_SECONDS && !seen.contains(name); turn++) {
            Thread.sleep(100);
            seen.add(admin.activeConsumer(topic + "-partition-0"));
        }
        assertTrue(seen.contains(name), name + " was never active, only " + seen);
    }
}
