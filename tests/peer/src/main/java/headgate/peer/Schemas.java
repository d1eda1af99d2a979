package headgate.peer;

import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.schema.GenericRecord;
import org.apache.pulsar.common.schema.KeyValue;
import org.apache.pulsar.common.schema.KeyValueEncodingType;

/**
 * What an application with the Java client sees of schemas: a definition that may follow those of a
 * topic is taken, another one is refused. Argument: the broker's service URL.
 */
public final class Schemas {
    private static final int WAIT_SECONDS = 15;
    private static final String REFUSED = "IncompatibleSchemaException";

    private final PulsarClient client;
    private int names;

    private Schemas(PulsarClient client) {
        this.client = client;
    }

    /** A record. */
    public static final class Order {
        public long id;
        public String note;

        @Override
        public String toString() {
            return id + " " + note;
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

    public static void main(String[] arguments) throws Exception {
        Cases cases = new Cases();
        try (PulsarClient client = PulsarClient.builder().serviceUrl(arguments[0])
                .operationTimeout(WAIT_SECONDS, TimeUnit.SECONDS).build()) {
            new Schemas(client).playAll(cases);
        }
        cases.finish();
    }

    private void playAll(Cases cases) {
        Order order = new Order();
        order.id = 7;
        order.note = "seven";
        cases.play("AVRO arrives", order, () -> passed("avro", Schema.AVRO(Order.class), order));
        cases.play("JSON arrives", order, () -> passed("json", Schema.JSON(Order.class), order));
        cases.play("STRING arrives", "text", () -> passed("string", Schema.STRING, "text"));
        cases.play("a separated KeyValue arrives", "k=7 seven", () -> {
            KeyValue<String, Order> pair = passed("pairs", pairs(KeyValueEncodingType.SEPARATED),
                    new KeyValue<>("k", order));
            return pair.getKey() + "=" + pair.getValue();
        });
        cases.play("AUTO_CONSUME reads AVRO", 7L, () -> {
            Message<GenericRecord> found = first("avro", Schema.AUTO_CONSUME());
            return found.getValue().getField("id");
        });
        cases.play("AUTO_CONSUME reads JSON", 7L, () -> {
            Message<GenericRecord> found = first("json", Schema.AUTO_CONSUME());
            return ((Number) found.getValue().getField("id")).longValue();
        });
        cases.play("AUTO_PRODUCE takes what fits", "sent", () -> {
            produce("avro", Schema.AUTO_PRODUCE_BYTES(), Schema.AVRO(Order.class).encode(order));
            return "sent";
        });
        cases.play("bytes pass", "sent", () -> {
            produce("avro", Schema.BYTES, Schema.AVRO(Order.class).encode(order));
            return "sent";
        });
        cases.play("a producer of another record", REFUSED,
                () -> client.newProducer(Schema.AVRO(Invoice.class)).topic("avro").create());
        cases.play("a consumer of another record", REFUSED,
                () -> first("avro", Schema.AVRO(Invoice.class)));
        cases.play("a reader of another record", REFUSED, () -> client.newReader(
                Schema.AVRO(Invoice.class)).topic("avro")
                .startMessageId(org.apache.pulsar.client.api.MessageId.earliest).create());
        cases.play("the same record as JSON", REFUSED,
                () -> client.newProducer(Schema.JSON(Order.class)).topic("avro").create());
        cases.play("another encoding of key and value is no other definition", "created", () -> {
            client.newProducer(pairs(KeyValueEncodingType.INLINE)).topic("pairs").create().close();
            return "created";
        });
        cases.play("a definition that may follow", "created", () -> {
            client.newProducer(Schema.AVRO(More.class)).topic("avro").create().close();
            return "created";
        });
        cases.play("a message with a schema of its own", "sent", () -> {
            try (Producer<byte[]> producer = client.newProducer().topic("own").create()) {
                producer.newMessage(Schema.AVRO(Order.class)).value(order).send();
                return "sent";
            }
        });
        cases.play("... and another one", REFUSED, () -> {
            try (Producer<byte[]> producer = client.newProducer().topic("own").create()) {
                Invoice invoice = new Invoice();
                return producer.newMessage(Schema.AVRO(Invoice.class)).value(invoice).send();
            }
        });
    }

    private static Schema<KeyValue<String, Order>> pairs(KeyValueEncodingType encoding) {
        return Schema.KeyValue(Schema.STRING, Schema.AVRO(Order.class), encoding);
    }

    /** A value that was sent and received with one schema. */
    private <T> T passed(String topic, Schema<T> schema, T value) throws Exception {
        produce(topic, schema, value);
        return first(topic, schema).getValue();
    }

    private <T> void produce(String topic, Schema<T> schema, T value) throws Exception {
        try (Producer<T> producer = client.newProducer(schema).topic(topic).create()) {
            producer.send(value);
        }
    }

    /** The first message of a topic. */
    private <T> Message<T> first(String topic, Schema<T> schema) throws Exception {
        try (Consumer<T> consumer = client.newConsumer(schema).topic(topic)
                .subscriptionName("s" + names++)
                .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).subscribe()) {
            Message<T> found = consumer.receive(WAIT_SECONDS, TimeUnit.SECONDS);
            if (found == null) {
                throw new IllegalStateException("nothing came");
            }
            found.getValue(); // decoded while the consumer can still ask for the schema
            return found;
        }
    }
}
