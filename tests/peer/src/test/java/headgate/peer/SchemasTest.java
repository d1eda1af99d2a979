package headgate.peer;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.protobuf.Int64Value;
import com.google.protobuf.StringValue;
import java.time.Instant;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.PulsarClientException.IncompatibleSchemaException;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.SchemaSerializationException;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.schema.GenericRecord;
import org.apache.pulsar.common.schema.KeyValue;
import org.apache.pulsar.common.schema.KeyValueEncodingType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Schemas: a definition that may follow those of a topic is taken, another one is refused. */
class SchemasTest extends ClientTest {
    private static final Class<IncompatibleSchemaException> REFUSED = IncompatibleSchemaException.class;

    private int names;

    /** A record. */
    public static final class Order {
        public long id;
        public String note;

        public Order() {
        }

        Order(long id, String note) {
            this.id = id;
            this.note = note;
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Order order && order.id == id && order.note.equals(note);
        }

        @Override
        public int hashCode() {
            return Objects.hash(id, note);
        }
    }

    /** The record with a field that may be missing. */
    public static final class More {
        public long id;
        public String note;
        public String more;
    }

    /** Another one. */
    public static final class Invoice {
        public double sum;
    }

    private static final Order ORDER = new Order(7, "seven");

    @Test
    void valuesArrive() throws Exception {
        assertEquals(ORDER, passed("avro", Schema.AVRO(Order.class), ORDER));
        assertEquals(ORDER, passed("json", Schema.JSON(Order.class), ORDER));
        assertEquals("text", passed("string", Schema.STRING, "text"));
        assertEquals(7L, passed("int64", Schema.INT64, 7L));
        assertEquals(0.5, passed("double", Schema.DOUBLE, 0.5));
        assertEquals(true, passed("bool", Schema.BOOL, true));
        assertEquals(Instant.ofEpochSecond(7), passed("instant", Schema.INSTANT, Instant.ofEpochSecond(7)));
    }

    @Test
    void protobufArrives() throws Exception {
        Int64Value value = Int64Value.of(7);
        assertEquals(value, passed("protobuf", Schema.PROTOBUF(Int64Value.class), value));
        assertEquals(value, passed("native", Schema.PROTOBUF_NATIVE(Int64Value.class), value));
        assertThrows(REFUSED, () -> client.newProducer(Schema.PROTOBUF(StringValue.class))
                .topic(topic + "protobuf").create());
        assertThrows(REFUSED, () -> client.newProducer(Schema.PROTOBUF_NATIVE(StringValue.class))
                .topic(topic + "native").create());
    }

    @ParameterizedTest
    @EnumSource(KeyValueEncodingType.class)
    void aKeyValueArrives(KeyValueEncodingType encoding) throws Exception {
        KeyValue<String, Order> pair = passed("", pairs(encoding), new KeyValue<>("k", ORDER));
        assertEquals("k", pair.getKey());
        assertEquals(ORDER, pair.getValue());
    }

    @Test
    void anotherEncodingOfKeyAndValueIsNoOtherDefinition() throws Exception {
        produce("", pairs(KeyValueEncodingType.SEPARATED), new KeyValue<>("k", ORDER));
        client.newProducer(pairs(KeyValueEncodingType.INLINE)).topic(topic).create().close();
    }

    @Test
    void autoConsumeReadsWhatThereIs() throws Exception {
        produce("-avro", Schema.AVRO(Order.class), ORDER);
        produce("-json", Schema.JSON(Order.class), ORDER);
        for (String kind : List.of("-avro", "-json")) {
            GenericRecord found = first(kind, Schema.AUTO_CONSUME()).getValue();
            assertEquals(7L, ((Number) found.getField("id")).longValue());
            assertEquals("seven", found.getField("note"));
        }
    }

    @Test
    void autoProduceAndBytesPass() throws Exception {
        Schema<Order> schema = Schema.AVRO(Order.class);
        produce("", schema, ORDER);
        produce("", Schema.AUTO_PRODUCE_BYTES(), schema.encode(ORDER));
        produce("", Schema.BYTES, schema.encode(ORDER));
        assertThrows(SchemaSerializationException.class,
                () -> produce("", Schema.AUTO_PRODUCE_BYTES(), new byte[] {1}));
    }

    @Test
    void anotherRecordIsRefused() throws Exception {
        produce("", Schema.AVRO(Order.class), ORDER);
        Schema<Invoice> other = Schema.AVRO(Invoice.class);
        assertThrows(REFUSED, () -> client.newProducer(other).topic(topic).create());
        assertThrows(REFUSED, () -> first("", other));
        assertThrows(REFUSED, () -> client.newReader(other).topic(topic)
                .startMessageId(MessageId.earliest).create());
        assertThrows(REFUSED, () -> client.newProducer(Schema.JSON(Order.class)).topic(topic).create());
    }

    @Test
    void aDefinitionThatMayFollowIsTheNextVersion() throws Exception {
        produce("", Schema.AVRO(Order.class), ORDER);
        client.newProducer(Schema.AVRO(More.class)).topic(topic).create().close();
        More found = first("", Schema.AVRO(More.class)).getValue();
        assertEquals(7, found.id);
        assertNull(found.more);
        String versions = admin.ask("GET", "schemas/" + topic.replace("persistent://", "") + "/schemas", "");
        assertTrue(versions.contains("\"version\":1"), versions);
    }

    @Test
    void aMessageMayHaveASchemaOfItsOwn() throws Exception {
        try (Producer<byte[]> producer = producer()) {
            producer.newMessage(Schema.AVRO(Order.class)).value(ORDER).send();
            assertThrows(REFUSED,
                    () -> producer.newMessage(Schema.AVRO(Invoice.class)).value(new Invoice()).send());
        }
    }

    private static Schema<KeyValue<String, Order>> pairs(KeyValueEncodingType encoding) {
        return Schema.KeyValue(Schema.STRING, Schema.AVRO(Order.class), encoding);
    }

    /** A value that was sent and received with one schema. */
    private <T> T passed(String suffix, Schema<T> schema, T value) throws Exception {
        produce(suffix, schema, value);
        return first(suffix, schema).getValue();
    }

    private <T> void produce(String suffix, Schema<T> schema, T value) throws PulsarClientException {
        try (Producer<T> producer = client.newProducer(schema).topic(topic + suffix).create()) {
            producer.send(value);
        }
    }

    /** The first message of a topic. */
    private <T> Message<T> first(String suffix, Schema<T> schema) throws PulsarClientException {
        try (Consumer<T> consumer = client.newConsumer(schema).topic(topic + suffix)
                .subscriptionName("s" + names++)
                .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).subscribe()) {
            Message<T> found = consumer.receive(WAIT_SECONDS, TimeUnit.SECONDS);
            assertNotNull(found);
            found.getValue(); // decoded while the consumer can still ask for the schema
            return found;
        }
    }
}
