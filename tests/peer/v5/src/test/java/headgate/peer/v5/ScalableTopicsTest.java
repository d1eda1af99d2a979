package headgate.peer.v5;

import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTimeout;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import org.apache.pulsar.client.api.v5.PulsarClient;
import org.apache.pulsar.client.api.v5.PulsarClientException;
import org.apache.pulsar.client.api.v5.schema.Schema;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

/**
 * The V5 API, which asks a broker for the layout of every topic: it fails at once, as with Pulsar
 * 4.0, because the broker does not say that it knows scalable topics.
 */
class ScalableTopicsTest {
    private static final Duration AT_ONCE = Duration.ofSeconds(10);
    private static final String REFUSED = "Broker does not support scalable topics";
    private static final String TOPIC = "persistent://public/default/v5";

    private static PulsarClient client;

    @BeforeAll
    static void connect() throws PulsarClientException {
        client = PulsarClient.builder().serviceUrl(System.getProperty("headgate.serviceUrl")).build();
    }

    @AfterAll
    static void disconnect() throws PulsarClientException {
        client.close();
    }

    @Test
    void producers() {
        fails(() -> client.newProducer(Schema.string()).topic(TOPIC).create());
    }

    @Test
    void queueConsumers() {
        fails(() -> client.newQueueConsumer(Schema.string()).topic(TOPIC).subscriptionName("s").subscribe());
    }

    @Test
    void streamConsumers() {
        fails(() -> client.newStreamConsumer(Schema.string()).topic(TOPIC).subscriptionName("s").subscribe());
    }

    @Test
    void checkpointConsumers() {
        fails(() -> client.newCheckpointConsumer(Schema.string()).topic(TOPIC).create());
    }

    private static void fails(Executable attempt) {
        assertTimeout(AT_ONCE, () -> {
            Exception found = assertThrows(PulsarClientException.class, attempt);
            assertTrue(found.getMessage().contains(REFUSED), found.getMessage());
        });
    }
}
