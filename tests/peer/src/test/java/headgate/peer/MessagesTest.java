package headgate.peer;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.util.Base64;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.BatchReceivePolicy;
import org.apache.pulsar.client.api.CompressionType;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.CryptoKeyReader;
import org.apache.pulsar.client.api.EncryptionKeyInfo;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageRoutingMode;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.client.api.TopicMessageId;
import org.apache.pulsar.client.api.schema.GenericRecord;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What a message carries, how large it may be, and where it goes. */
class MessagesTest extends ClientTest {
    private static final int LIMIT_BYTES = 5 * 1024 * 1024;

    @ParameterizedTest
    @CsvSource({"NONE,false", "NONE,true", "LZ4,true", "ZLIB,true", "ZSTD,false", "SNAPPY,true"})
    void messagesArriveAsTheyWereSent(CompressionType compression, boolean isBatched) throws Exception {
        try (Consumer<byte[]> consumer = consumer(SubscriptionType.Exclusive).subscribe();
                Producer<byte[]> producer = client.newProducer().topic(topic).producerName("author")
                        .compressionType(compression).enableBatching(isBatched)
                        .batchingMaxMessages(7).create()) {
            for (int number = 0; number < 30; number++) {
                producer.newMessage().value(new byte[number]).key("key " + number % 3)
                        .orderingKey("é".getBytes("UTF-8"))
                        .properties(Map.of("number", String.valueOf(number), "empty", ""))
                        .eventTime(1_000 + number).sequenceId(100 + number).sendAsync();
            }
            producer.flush();
            int number = 0;
            for (Message<byte[]> message : receive(consumer, 30)) {
                assertArrayEquals(new byte[number], message.getData());
                assertEquals("key " + number % 3, message.getKey());
                assertEquals("é", new String(message.getOrderingKey(), "UTF-8"));
                assertEquals(Map.of("number", String.valueOf(number), "empty", ""), message.getProperties());
                assertEquals(1_000 + number, message.getEventTime());
                assertEquals(100 + number, message.getSequenceId());
                assertEquals("author", message.getProducerName());
                assertEquals(topic, message.getTopicName());
                assertEquals(0, message.getRedeliveryCount());
                number++;
            }
            assertEquals(129, producer.getLastSequenceId());
        }
    }

    @Test
    void largeMessagesComeInChunks() throws Exception {
        byte[] large = new byte[12 * 1024 * 1024];
        large[large.length - 1] = 1;
        try (Consumer<byte[]> consumer = consumer(SubscriptionType.Shared).subscribe();
                Producer<byte[]> producer = client.newProducer().topic(topic).enableBatching(false)
                        .enableChunking(true).create()) {
            producer.send(large);
            producer.send("small".getBytes());
            List<Message<byte[]>> found = receive(consumer, 2);
            assertArrayEquals(large, found.get(0).getData());
            assertEquals("small", text(found.get(1)));
            consumer.acknowledge(found.get(0));
            consumer.acknowledge(found.get(1));
        }
        admin.awaitBacklog(topic, "s", 0);
    }

    @Test
    void aMessageAtTheLimitAndOneAbove() throws Exception {
        try (Consumer<byte[]> consumer = consumer(SubscriptionType.Exclusive).subscribe();
                Producer<byte[]> producer = client.newProducer().topic(topic).enableBatching(false).create()) {
            assertThrows(PulsarClientException.InvalidMessageException.class,
                    () -> producer.send(new byte[LIMIT_BYTES + 1]));
            producer.send(new byte[LIMIT_BYTES - 1_000]);
            assertEquals(LIMIT_BYTES - 1_000, receive(consumer, 1).get(0).size());
        }
    }

    @Test
    void aBatchIsReceivedAtOnce() throws Exception {
        try (Consumer<byte[]> consumer = consumer(SubscriptionType.Exclusive)
                .batchReceivePolicy(BatchReceivePolicy.builder().maxNumMessages(50)
                        .timeout(WAIT_SECONDS, TimeUnit.SECONDS).build()).subscribe();
                Producer<byte[]> producer = producer()) {
            sendAll(producer, 50);
            assertEquals(50, consumer.batchReceive().size());
        }
    }

    @Test
    void aConsumerWithoutAQueue() throws Exception {
        try (Consumer<byte[]> consumer = consumer(SubscriptionType.Shared).receiverQueueSize(0).subscribe();
                Producer<byte[]> producer = client.newProducer().topic(topic).enableBatching(false).create()) {
            sendAll(producer, 3);
            for (String text : texts(0, 3)) {
                Message<byte[]> message = consumer.receiveAsync().get(WAIT_SECONDS, TimeUnit.SECONDS);
                assertEquals(text, text(message));
                consumer.acknowledge(message);
            }
        }
    }

    @Test
    void keysGoToOneOfThreePartitions() throws Exception {
        admin.ask("PUT", topic.replace("://", "/") + "/partitions", "3");
        assertEquals(3, client.getPartitionsForTopic(topic).get().size());
        Map<String, Set<String>> found = new HashMap<>();
        try (Consumer<byte[]> consumer = consumer(SubscriptionType.Shared).subscribe();
                Producer<byte[]> producer = producer()) {
            for (int number = 0; number < 60; number++) {
                producer.newMessage().key("k" + number % 9).value("m".getBytes()).sendAsync();
            }
            producer.flush();
            for (Message<byte[]> message : receive(consumer, 60)) {
                found.computeIfAbsent(message.getKey(), key -> new HashSet<>()).add(message.getTopicName());
                assertEquals(message.getTopicName(),
                        ((TopicMessageId) message.getMessageId()).getOwnerTopic());
            }
        }
        assertEquals(9, found.size());
        found.values().forEach(each -> assertEquals(1, each.size()));
    }

    @Test
    void clientsFollowPartitionsThatAreAdded() throws Exception {
        String partitions = topic.replace("://", "/") + "/partitions";
        admin.ask("PUT", partitions, "1");
        try (Consumer<byte[]> consumer = consumer(SubscriptionType.Shared)
                        .autoUpdatePartitionsInterval(1, TimeUnit.SECONDS).subscribe();
                Producer<byte[]> producer = client.newProducer().topic(topic).enableBatching(false)
                        .messageRoutingMode(MessageRoutingMode.RoundRobinPartition)
                        .autoUpdatePartitionsInterval(1, TimeUnit.SECONDS).create()) {
            admin.ask("POST", partitions, "3");
            Set<String> found = new HashSet<>();
            for (int number = 0; found.size() < 3; number++) {
                assertTrue(number < 100, () -> "only " + found);
                producer.send(("m" + number).getBytes());
                Message<byte[]> message = receive(consumer, 1).get(0);
                assertEquals("m" + number, text(message));
                found.add(message.getTopicName());
                Thread.sleep(100); // the clients ask for the partitions once a second
            }
            assertEquals(Set.of(topic + "-partition-0", topic + "-partition-1", topic + "-partition-2"), found);
        }
    }

    @Test
    void lookUpsGoOverHttp() throws Exception {
        admin.ask("PUT", topic.replace("://", "/") + "/partitions", "3");
        try (PulsarClient http = PulsarClient.builder()
                        .serviceUrl(System.getProperty("headgate.adminUrl")).build();
                Consumer<String> consumer = http.newConsumer(Schema.STRING).topic(topic)
                        .subscriptionName("s").subscribe();
                Producer<String> producer = http.newProducer(Schema.STRING).topic(topic).create()) {
            assertEquals(3, http.getPartitionsForTopic(topic).get().size());
            producer.send("over http");
            Message<String> found = consumer.receive(WAIT_SECONDS, TimeUnit.SECONDS);
            assertEquals("over http", found.getValue());
            try (Consumer<GenericRecord> any = http.newConsumer(Schema.AUTO_CONSUME())
                    .topicsPattern(topic + ".*").subscriptionName("any")
                    .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).subscribe()) {
                Message<GenericRecord> again = any.receive(WAIT_SECONDS, TimeUnit.SECONDS);
                assertEquals("over http", again.getValue().getNativeObject());
            }
        }
    }

    @Test
    void encryptedMessagesPassAndOnlyTheirKeyReadsThem() throws Exception {
        KeyPairGenerator generator = KeyPairGenerator.getInstance("RSA");
        generator.initialize(2_048);
        CryptoKeyReader keys = new Keys(generator.generateKeyPair());
        try (Consumer<byte[]> consumer = consumer(SubscriptionType.Exclusive).cryptoKeyReader(keys).subscribe();
                Producer<byte[]> producer = client.newProducer().topic(topic).cryptoKeyReader(keys)
                        .addEncryptionKey("own").create()) {
            producer.send("secret".getBytes());
            Message<byte[]> found = receive(consumer, 1).get(0);
            assertEquals("secret", text(found));
            assertEquals(Set.of("own"), found.getEncryptionCtx().orElseThrow().getKeys().keySet());
        }
        try (Consumer<byte[]> consumer = consumer(SubscriptionType.Exclusive).subscribe()) {
            assertSilent(consumer);
        }
    }

    @Test
    void clientsComeBackWhenTheirTopicIsUnloaded() throws Exception {
        try (Consumer<byte[]> consumer = consumer(SubscriptionType.Shared).subscribe();
                Producer<byte[]> producer = client.newProducer().topic(topic).enableBatching(false).create()) {
            sendAll(producer, 4);
            for (Message<byte[]> message : receive(consumer, 2)) {
                consumer.acknowledge(message);
            }
            admin.awaitBacklog(topic, "s", 2);
            admin.ask("PUT", topic.replace("://", "/") + "/unload", "");
            producer.send("later".getBytes());
            Set<String> expected = Set.of("m2", "m3", "later");
            Set<String> found = new HashSet<>();
            while (!found.containsAll(expected)) {
                Message<byte[]> message = receive(consumer, 1).get(0);
                consumer.acknowledge(message);
                found.add(text(message));
            }
            admin.awaitBacklog(topic, "s", 0);
        }
    }

    /** One key pair, in memory. */
    private record Keys(KeyPair pair) implements CryptoKeyReader {
        @Override
        public EncryptionKeyInfo getPublicKey(String name, Map<String, String> metadata) {
            return info("PUBLIC KEY", pair.getPublic().getEncoded());
        }

        @Override
        public EncryptionKeyInfo getPrivateKey(String name, Map<String, String> metadata) {
            return info("PRIVATE KEY", pair.getPrivate().getEncoded());
        }

        private static EncryptionKeyInfo info(String title, byte[] der) {
            String text = Base64.getMimeEncoder().encodeToString(der);
            String pem = "-----BEGIN " + title + "-----\n" + text + "\n-----END " + title + "-----\n";
            return new EncryptionKeyInfo(pem.getBytes(), Map.of());
        }
    }
}
