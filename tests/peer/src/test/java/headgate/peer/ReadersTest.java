package headgate.peer;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.MessageRoutingMode;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.Reader;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.client.api.TableView;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Where readers and consumers begin, seeks, the last message id, and table views. */
class ReadersTest extends ClientTest {
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void readersBeginWhereTheyAreTold(boolean isBatched) throws Exception {
        List<MessageId> ids;
        try (Producer<byte[]> producer = client.newProducer().topic(topic).enableBatching(isBatched)
                .batchingMaxMessages(4).create()) {
            ids = sendAll(producer, 10);
        }
        assertEquals(texts(0, 10), readFrom(MessageId.earliest, false));
        assertEquals(texts(5, 10), readFrom(ids.get(5), true));
        assertEquals(texts(6, 10), readFrom(ids.get(5), false));
        assertEquals(texts(9, 10), readFrom(ids.get(9), true));
        assertEquals(List.of(), readFrom(ids.get(9), false));
        assertEquals(List.of(), readFrom(MessageId.latest, false));
    }

    @Test
    void aReaderOfAPartitionedTopicReadsAllPartitions() throws Exception {
        admin.ask("PUT", topic.replace("://", "/") + "/partitions", "3");
        try (Producer<byte[]> producer = client.newProducer().topic(topic).enableBatching(false)
                        .messageRoutingMode(MessageRoutingMode.RoundRobinPartition).create();
                Reader<byte[]> tail = client.newReader().topic(topic)
                        .startMessageId(MessageId.latest).create()) {
            sendAll(producer, 9);
            assertEquals(Set.copyOf(texts(0, 9)), new HashSet<>(readFrom(MessageId.earliest, false)));
            assertEquals(Set.copyOf(texts(0, 9)), new HashSet<>(rest(tail)));
            tail.seek(0);
            assertEquals(Set.copyOf(texts(0, 9)), new HashSet<>(rest(tail)));
        }
    }

    @Test
    void aReaderFollowsAndSeeks() throws Exception {
        try (Producer<byte[]> producer = producer()) {
            List<MessageId> ids = sendAll(producer, 5);
            try (Reader<byte[]> reader = client.newReader().topic(topic)
                    .startMessageId(MessageId.latest).create()) {
                assertFalse(reader.hasMessageAvailable());
                producer.send("new".getBytes());
                assertEquals("new", text(reader.readNext(WAIT_SECONDS, TimeUnit.SECONDS)));
                reader.seek(ids.get(2));
                assertEquals("m3", text(reader.readNext(WAIT_SECONDS, TimeUnit.SECONDS)));
                reader.seek(0);
                assertEquals("m0", text(reader.readNext(WAIT_SECONDS, TimeUnit.SECONDS)));
            }
        }
    }

    @Test
    void aConsumerSeeksByIdAndByTime() throws Exception {
        try (Consumer<byte[]> consumer = consumer(SubscriptionType.Exclusive).subscribe();
                Producer<byte[]> producer = producer()) {
            List<MessageId> ids = sendAll(producer, 5);
            Thread.sleep(20);
            long middleMs = System.currentTimeMillis();
            Thread.sleep(20);
            producer.send("later".getBytes());
            receive(consumer, 6);
            consumer.seek(ids.get(3));
            assertEquals(List.of("m4", "later"), rest(consumer));
            consumer.seek(middleMs);
            assertEquals(List.of("later"), rest(consumer));
            consumer.seek(MessageId.earliest);
            assertEquals(6, rest(consumer).size());
            consumer.seek(MessageId.latest);
            assertSilent(consumer);
        }
    }

    @Test
    void eachPartitionSeeksForItself() throws Exception {
        admin.ask("PUT", topic.replace("://", "/") + "/partitions", "2");
        try (Consumer<byte[]> consumer = consumer(SubscriptionType.Exclusive).subscribe();
                Producer<byte[]> producer = producer()) {
            for (int number = 0; number < 8; number++) {
                producer.newMessage().key("k" + number).value(("m" + number).getBytes()).send();
            }
            assertEquals(texts(0, 8), texts(receive(consumer, 8)).stream().sorted().toList());
            consumer.seek(name -> MessageId.earliest);
            assertEquals(texts(0, 8), rest(consumer).stream().sorted().toList());
        }
    }

    @Test
    void theLastMessageId() throws Exception {
        try (Consumer<byte[]> consumer = consumer(SubscriptionType.Exclusive).subscribe();
                Producer<byte[]> producer = batching(8)) {
            List<MessageId> ids = sendAll(producer, 8);
            assertEquals(0, consumer.getLastMessageIds().get(0).compareTo(ids.get(7)));
        }
    }

    @Test
    void aSubscriptionBeginsAtTheEndOrTheBeginning() throws Exception {
        try (Producer<byte[]> producer = producer();
                Consumer<byte[]> holding = consumer(SubscriptionType.Exclusive).subscribe()) {
            sendAll(producer, 3);
            try (Consumer<byte[]> late = consumer(SubscriptionType.Exclusive)
                    .subscriptionName("late").subscribe();
                    Consumer<byte[]> early = consumer(SubscriptionType.Exclusive).subscriptionName("early")
                            .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).subscribe()) {
                producer.send("new".getBytes());
                assertEquals(List.of("m0", "m1", "m2", "new"), rest(early));
                assertEquals(List.of("new"), rest(late));
            }
        }
    }

    @Test
    void aTableViewHasTheNewestValueOfEachKey() throws Exception {
        try (Producer<String> producer = client.newProducer(Schema.STRING).topic(topic).create()) {
            producer.newMessage().key("a").value("1").send();
            producer.newMessage().key("b").value("2").send();
            producer.newMessage().key("a").value("3").send();
            try (TableView<String> view = client.newTableView(Schema.STRING).topic(topic).create()) {
                assertEquals("3", view.get("a"));
                assertEquals(2, view.size());
                producer.newMessage().key("b").value("4").send();
                for (int turn = 0; turn < 10 * WAIT_SECONDS && !"4".equals(view.get("b")); turn++) {
                    Thread.sleep(100);
                }
                assertEquals("4", view.get("b"));
            }
        }
    }

    private List<String> readFrom(MessageId id, boolean isInclusive) throws Exception {
        var builder = client.newReader().topic(topic).startMessageId(id);
        if (isInclusive) {
            builder.startMessageIdInclusive();
        }
        try (Reader<byte[]> reader = builder.create()) {
            return rest(reader);
        }
    }
}
