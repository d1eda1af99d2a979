package headgate.peer;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.net.URI;
import java.net.URL;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Authentication;
import org.apache.pulsar.client.api.AuthenticationFactory;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.impl.auth.AuthenticationBasic;
import org.apache.pulsar.client.impl.auth.oauth2.AuthenticationFactoryOAuth2;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** TLS and authentication: the system properties name the authority to trust and the secrets. */
@Tag("secured")
class ConnectionsTest {
    private static final String TOPIC = "persistent://public/default/java-secured";
    private static final int WAIT_SECONDS = 15;
    private static final int OPERATION_SECONDS = 5;

    @Test
    void aToken() throws Exception {
        pass(AuthenticationFactory.token(token()));
    }

    @Test
    void aSupplierOfTokens() throws Exception {
        String token = token();
        pass(AuthenticationFactory.token(() -> token));
    }

    @Test
    void aCertificate() throws Exception {
        pass(AuthenticationFactory.TLS(property("certificate"), property("key")));
    }

    @Test
    void tokensOfAnIssuer() throws Exception {
        URL issuer = URI.create(property("issuer")).toURL();
        URL credentials = Path.of(property("credentials")).toUri().toURL();
        pass(AuthenticationFactoryOAuth2.clientCredentials(issuer, credentials, property("audience")));
    }

    @Test
    void aPassword() throws Exception {
        AuthenticationBasic basic = new AuthenticationBasic();
        basic.configure("{\"userId\":\"" + property("user") + "\",\"password\":\""
                + property("password") + "\"}");
        pass(basic);
    }

    @Test
    void anotherTokenIsRefused() throws Exception {
        refuse(property("authority"), AuthenticationFactory.token(token() + "x"));
    }

    @Test
    void aBrokerWithAnUnknownAuthorityIsNotTrusted() throws Exception {
        refuse(property("certificate"), AuthenticationFactory.token(token()));
    }

    private static void pass(Authentication authentication) throws Exception {
        try (PulsarClient client = client(property("authority"), authentication);
                Consumer<byte[]> consumer = client.newConsumer().topic(TOPIC)
                        .subscriptionName(authentication.getAuthMethodName()).subscribe();
                Producer<byte[]> producer = client.newProducer().topic(TOPIC).create()) {
            producer.send("m0".getBytes());
            Message<byte[]> message = consumer.receive(WAIT_SECONDS, TimeUnit.SECONDS);
            assertEquals("m0", new String(message.getData()));
            consumer.acknowledge(message);
        }
    }

    private static void refuse(String authority, Authentication authentication) throws Exception {
        try (PulsarClient client = client(authority, authentication)) {
            assertThrows(PulsarClientException.class, () -> client.newProducer().topic(TOPIC).create());
        }
    }

    private static PulsarClient client(String authority, Authentication authentication)
            throws PulsarClientException {
        return PulsarClient.builder().serviceUrl(property("serviceUrl"))
                .tlsTrustCertsFilePath(authority).enableTlsHostnameVerification(true)
                .authentication(authentication)
                .operationTimeout(OPERATION_SECONDS, TimeUnit.SECONDS).build();
    }

    private static String token() throws Exception {
        return Files.readString(Path.of(property("token"))).trim();
    }

    private static String property(String name) {
        return System.getProperty("headgate." + name);
    }
}
