package headgate.peer;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The broker's admin REST, as far as the cases need it. */
final class Admin {
    private static final Duration TIMEOUT = Duration.ofSeconds(20);

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

    /** Give up everything that a subscription owes. */
    void makeRoom(String topic, String subscription) throws IOException, InterruptedException {
        ask("POST", path(topic) + "/subscription/" + subscription + "/skip_all", "");
    }

    /** When each of the topic's producers was connected: it changes when one had to come back. */
    String connectedSince(String topic) throws IOException, InterruptedException {
        Matcher found = Pattern.compile("\"publishers\":\\[(.*?)\\]").matcher(stats(topic));
        if (!found.find()) {
            return "";
        }
        Matcher since = Pattern.compile("\"connectedSince\":\"([^\"]*)\"").matcher(found.group(1));
        return since.find() ? since.group(1) : "";
    }

    /** Have a topic take no more messages. */
    void terminate(String topic) throws IOException, InterruptedException {
        ask("POST", path(topic) + "/terminate", "");
    }

    private String stats(String topic) throws IOException, InterruptedException {
        return ask("GET", path(topic) + "/stats", "");
    }

    private static String path(String topic) {
        return topic.replace("://", "/");
    }
}
