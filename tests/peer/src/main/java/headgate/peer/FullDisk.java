package headgate.peer;

import java.nio.ByteBuffer;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;

/**
 * What an application with the Java client sees of a disk that becomes full: a send ends by the
 * client's own timeout, its consumers go on, and when there is room so do its sends. Argument: the
 * URL of a broker on a small disk, which whoever started this makes larger when all is consumed.
 */
public final class FullDisk {
    private static final String TOPIC = "persistent://public/default/full-disk";
    private static final int SEND_TIMEOUT_SECONDS = 5;
    private static final int WAIT_SECONDS = 15;
    private static final int BODY_BYTES = 1_000_000;
    private static final int SENDS_MAX = 1_000;
    private static final int TRIES_MAX = 6;

    private FullDisk() {
    }

    public static void main(String[] arguments) throws Exception {
        Cases cases = new Cases();
        try (PulsarClient client = PulsarClient.builder().serviceUrl(arguments[0]).build();
                Consumer<byte[]> consumer = client.newConsumer().topic(TOPIC).subscriptionName("s")
                        .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).subscribe();
                Producer<byte[]> producer = client.newProducer().topic(TOPIC).enableBatching(false)
                        .sendTimeout(SEND_TIMEOUT_SECONDS, TimeUnit.SECONDS).create()) {
            int[] stored = {0};
            double[] lasted = {0};
            cases.play("a send to a full disk", "TimeoutException", () -> {
                while (stored[0] < SENDS_MAX) {
                    long begin = System.nanoTime();
                    try {
                        producer.send(body(stored[0]));
                    } finally {
                        lasted[0] = Sends.secondsSince(begin);
                    }
                    stored[0]++;
                }
                return "the disk is not full";
            });
            cases.play("... ends by its timeout", true,
                    () -> lasted[0] > SEND_TIMEOUT_SECONDS - 1 && lasted[0] < SEND_TIMEOUT_SECONDS + 4);
            cases.play("a new subscription to a new topic", "made", () -> {
                client.newConsumer().topic(TOPIC + "-new").subscriptionName("s").subscribe().close();
                return "made";
            });
            cases.play("consumers of the same client get and acknowledge everything", stored[0], () -> {
                for (int number = 0; number < stored[0]; number++) {
                    Message<byte[]> found = consumer.receive(WAIT_SECONDS, TimeUnit.SECONDS);
                    if (found == null || numberOf(found) != number) {
                        return "behind " + number + " of " + stored[0] + ": " + found;
                    }
                    consumer.acknowledge(found);
                }
                return stored[0];
            });
            cases.play("sends go on when there is room", "sent", () -> {
                for (int tries = 1; ; tries++) {
                    try {
                        producer.send(body(SENDS_MAX));
                        return "sent";
                    } catch (Exception error) {
                        if (tries == TRIES_MAX) {
                            throw error;
                        }
                    }
                }
            });
        }
        cases.finish();
    }

    private static byte[] body(int number) {
        return ByteBuffer.allocate(BODY_BYTES).putInt(number).array();
    }

    private static int numberOf(Message<byte[]> message) {
        return ByteBuffer.wrap(message.getData()).getInt();
    }
}
