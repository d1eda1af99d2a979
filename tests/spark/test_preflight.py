"""Unreachable brokers are reported with their address and a remedy. Needs no Spark."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from headgate.base.errors import InputError
from headgate.pipeline import preflight
from headgate.pipeline.access_options import NO_ACCESS, AccessOptions
from headgate.pipeline.options import TELEMETRY_TOPIC, SourceOptions
from headgate.wire import replies
from headgate.wire.codes import ServerError
from tests.spark.conftest import Broker, Cluster

NOBODY = "pulsar://127.0.0.1:1"


def failure(broker_url: str, web_url: str, topic: str, access: AccessOptions = NO_ACCESS) -> str:
    with pytest.raises(InputError) as caught:
        preflight.check_brokers(SourceOptions("t", (broker_url,), (web_url,), topic, access=access))
    return str(caught.value)


@pytest.fixture
def closed_port() -> int:
    """A port where nobody listens, for nobody was told of it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@pytest.fixture(scope="module")
def topic(cluster: Cluster) -> str:
    name = cluster.new_topic()
    cluster.publish(name, [b"x"])
    return name


@contextmanager
def answering(reply: bytes) -> Iterator[str]:
    """``host:port`` of a server that sends ``reply`` to one connection and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(4_096)
                connection.sendall(reply)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        thread.join(10)


def test_a_running_broker_passes(broker: Broker, topic: str) -> None:
    urls = (broker.service_url,), (broker.admin_url,)
    preflight.check_brokers(SourceOptions("t", *urls, topic))
    twice = (broker.service_url,) * 2, (f"{broker.admin_url}/",) * 2
    preflight.check_brokers(SourceOptions("t", *twice, topic))


def test_an_unreachable_web_url(closed_port: int, topic: str) -> None:
    url = f"http://127.0.0.1:{closed_port}"
    assert failure(NOBODY, url, topic).startswith(
        f"{url} cannot be reached: Connection refused (--admin-url names the admin API"
    )


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (b"", "Remote end closed connection without response"),
        (b"SSH-2.0-OpenSSH\r\n", "the answer is not HTTP"),
    ],
)
def test_something_else_at_the_web_url(reply: bytes, why: str, topic: str) -> None:
    with answering(reply) as address:
        text = failure(NOBODY, f"http://{address}", topic)
    assert text.startswith(f"http://{address} cannot be reached: {why} (--admin-url names")


def test_every_unreachable_broker_is_reported(closed_port: int) -> None:
    urls = (f"http://127.0.0.1:{closed_port}", "http://nobody.invalid:8080")
    with pytest.raises(InputError) as caught:
        preflight.check_brokers(SourceOptions("t", (NOBODY, NOBODY), urls))
    first, second = str(caught.value).splitlines()
    assert first.startswith(f"{urls[0]} cannot be reached: Connection refused ")
    assert second.startswith(f"{urls[1]} cannot be reached: ")


def test_an_unknown_host(topic: str) -> None:
    text = failure(NOBODY, "http://nobody.invalid:8080", topic)
    assert text.startswith("http://nobody.invalid:8080 cannot be reached: ")


def test_a_missing_topic(broker: Broker, cluster: Cluster) -> None:
    missing = cluster.new_topic()
    assert failure(broker.service_url, broker.admin_url, missing).startswith(
        f"{broker.admin_url} has no topic {missing}: a broker creates it with its first telemetry"
    )


class Pulsar(BaseHTTPRequestHandler):
    """Answers as Apache Pulsar does where nothing is."""

    status = 404

    def do_GET(self) -> None:
        body = b'{"reason": "HTTP 404 Not Found"}'
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class Refusing(Pulsar):
    """Answers as a proxy does that wants a token."""

    status = 401


def failure_at(handler: type[Pulsar]) -> tuple[str, str]:
    """The URL of a server with this handler, and how it is refused."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            url = f"http://127.0.0.1:{server.server_port}"
            return url, failure(NOBODY, url, TELEMETRY_TOPIC)
        finally:
            server.shutdown()
            thread.join(10)


def test_a_missing_token_is_reported_with_the_command_s_options() -> None:
    _, text = failure_at(Refusing)
    assert "answered 401" in text
    assert "credentials are needed (--config, --profile or --auth-plugin and" in text
    assert "authP" not in text


def test_a_pulsar_publishes_no_telemetry() -> None:
    url, text = failure_at(Pulsar)
    assert text.startswith(
        f"{url} has no topic {TELEMETRY_TOPIC}: it is no Headgate broker (Apache Pulsar?), and"
    )
    assert "first telemetry" not in text


def test_an_unreachable_broker_url(broker: Broker, closed_port: int, topic: str) -> None:
    url = f"pulsar://127.0.0.1:{closed_port}"
    assert failure(url, broker.admin_url, topic).startswith(
        f"{url} cannot be reached: Connection refused (--broker-url names the binary port"
    )


def test_the_web_port_as_broker_url(broker: Broker, topic: str) -> None:
    url = broker.admin_url.replace("http:", "pulsar:")
    assert failure(url, broker.admin_url, topic).startswith(
        f"{url} does not answer as a broker does (--broker-url names the binary port"
    )


def test_a_token_that_the_binary_port_refuses(broker: Broker, topic: str) -> None:
    reply = replies.error((1 << 64) - 1, ServerError.AUTHENTICATION_ERROR, "who is s3cret?")
    with answering(reply) as address:
        access = AccessOptions("token", "token:s3cret")
        text = failure(f"pulsar://{address}", broker.admin_url, topic, access)
    assert text.startswith(
        f"pulsar://{address} refuses the connection (AuthenticationError: who is ***?): "
    )
    assert "--config, --profile or --auth-plugin and --auth-params give the credentials" in text


def test_several_hosts_are_left_to_the_client(broker: Broker, topic: str) -> None:
    urls = ("pulsar://127.0.0.1:1,127.0.0.1:2",), (broker.admin_url,)
    preflight.check_brokers(SourceOptions("t", *urls, topic))
