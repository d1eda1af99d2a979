package headgate.peer;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * A disk that becomes full. It needs a broker of its own on a small disk, which becomes larger when
 * all is consumed.
 */
@Tag("full-disk")
class FullDiskTest extends ClientTest {
    private static final String TOPIC = "persistent://public/default/full-disk";
    private static final int SEND_TIMEOUT_SECONDS = 5;
    private static final int BODY_BYTES = 1_000_000;
    private static final int SENDS_MAX = 1_000;
    private static final int TRIES_MAX = 6;

    private int stored;

    @Test
    void sendsTimeOutAndConsumersGoOn() throws Exception {
        try (Consumer<byte[]> consumer = client.newConsumer().topic(TOPIC).subscriptionName("s")
                .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).subscribe();
                Producer<byte[]> producer = client.newProducer().topic(TOPIC).enableBatching(false)
                        .sendTimeout(SEND_TIMEOUT_SECONDS, TimeUnit.SECONDS).create()) {
            double lasted = lastSendSeconds(producer);
            assertTrue(lasted > SEND_TIMEOUT_SECONDS - 1 && lasted < SEND_TIMEOUT_SECONDS + 4,
                    "the send ended after " + lasted + " s");
            client.newConsumer().topic(TOPIC + "-new").subscriptionName("s").subscribe().close();
            for (int number = 0; number < stored; number++) {
                var found = receive(consumer, 1).get(0);
                assertEquals(number, ByteBuffer.wrap(found.getData()).getInt());
                consumer.acknowledge(found);
            }
            sendWhenThereIsRoom(producer);
        }
    }

    /** Send until a send fails by its timeout, and return how long that one took. */
    private double lastSendSeconds(Producer<byte[]> producer) {
        double[] lasted = {0};
        assertThrows(PulsarClientException.TimeoutException.class, () -> {
            while (stored < SENDS_MAX) {
                long begin = System.nanoTime();
                try {
                    producer.send(body(stored));
                } finally {
                    lasted[0] = Sends.secondsSince(begin);
                }
                stored++;
            }
        });
        return lasted[0];
    }

    private static void sendWhenThereIsRoom(Producer<byte[]> producer) throws Exception {
        for (int tries = 1; ; tries++) {
            try {
                producer.send(body(SENDS_MAX));
                return;
            } catch (PulsarClientException error) {
                if (tries == TRIES_MAX) {
                    throw error;
                }
            }
        }
    }

    private static byte[] body(int number) {
        return ByteBuffer.allocate(BODY_BYTES).putInt(number).array();
    }
}
