package headgate.peer;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The broker's admin REST, as far as the tests need it. */
final class Admin {
    private static final Duration TIMEOUT = Duration.ofSeconds(20);
    private static final int TURNS = 200;
    private static final long TURN_MS = 100;

    private final HttpClient http = HttpClient.newHttpClient();
    private final String url;

    Admin(String url) {
        this.url = url + "/admin/v2/";
    }

    /** The body of the answer to a request, which must not be refused. */
    String ask(String method, String path, String body) throws IOException, InterruptedException {
        var request = HttpRequest.newBuilder(URI.create(url + path))
                .method(method, body.isEmpty() ? BodyPublishers.noBody() : BodyPublishers.ofString(body))
                .header("Content-Type", "application/json")
                .timeout(TIMEOUT)
                .build();
        var reply = http.send(request, BodyHandlers.ofString());
        if (reply.statusCode() >= 300) {
            throw new IOException(method + " " + path + ": " + reply.statusCode() + " " + reply.body());
        }
        return reply.body();
    }

    /** Set a dynamic setting of the broker. */
    void set(String key, long value) throws IOException, InterruptedException {
        ask("POST", "brokers/configuration/" + key + "/" + value, "");
    }

    /** Have a dynamic setting of the broker be what its file says. */
    void reset(String key) throws IOException, InterruptedException {
        ask("DELETE", "brokers/configuration/" + key, "");
    }

    /** Give up everything that a subscription owes. */
    void makeRoom(String topic, String subscription) throws IOException, InterruptedException {
        ask("POST", path(topic) + "/subscription/" + subscription + "/skip_all", "");
    }

    /** When each of the topic's producers was connected: it changes when one had to come back. */
    String connectedSince(String topic) throws IOException, InterruptedException {
        String publishers = first("\"publishers\":\\[(.*?)\\]", stats(topic));
        return first("\"connectedSince\":\"([^\"]*)\"", publishers);
    }

    /** Wait until a subscription has so many messages to consume. */
    void awaitBacklog(String topic, String subscription, int count)
            throws IOException, InterruptedException {
        String expected = String.valueOf(count);
        String found = "";
        for (int turn = 0; turn < TURNS && !found.equals(expected); turn++) {
            Thread.sleep(TURN_MS);
            String stats = stats(topic);
            int begin = stats.indexOf("\"" + subscription + "\":{", stats.indexOf("\"subscriptions\""));
            found = first("\"msgBacklog\":(\\d+)", stats.substring(begin));
        }
        assertEquals(expected, found, "the backlog of " + subscription);
    }

    /** The active consumer of a topic's only subscription. */
    String activeConsumer(String topic) throws IOException, InterruptedException {
        return first("\"activeConsumerName\":\"([^\"]*)\"", stats(topic));
    }

    /** Have a topic take no more messages. */
    void terminate(String topic) throws IOException, InterruptedException {
        ask("POST", path(topic) + "/terminate", "");
    }

    private String stats(String topic) throws IOException, InterruptedException {
        return ask("GET", path(topic) + "/stats", "");
    }

    /** The first group of an expression where it is found first; empty without one. */
    private static String first(String expression, String text) {
        Matcher found = Pattern.compile(expression).matcher(text);
        return found.find() ? found.group(1) : "";
    }

    private static String path(String topic) {
        return topic.replace("://", "/");
    }
}
