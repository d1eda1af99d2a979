"""TLS with real clients: who is trusted, what is reloaded, what strangers can cost."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pulsar
import pytest

from headgate.wire import client as frames
from tests.service.clients import EARLIEST, RECEIVE_MS, client_of, full, wait_until
from tests.service.process import BrokerProcess, StartFailedError
from tests.trial_certificates import Trial

HALF_OPEN = 300
SENDS = 200


def words_of(settings: dict[str, str], **more: str) -> list[str]:
    """The settings as words of the command line."""
    merged = {**settings, "tlsCertRefreshCheckDurationSec": "1", **more}
    return [word for key, value in merged.items() for word in ("--set", f"{key}={value}")]


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    return Trial(tmp_path_factory.mktemp("certs"))


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    """Certificates of an authority that the broker does not know."""
    return Trial(tmp_path_factory.mktemp("others"))


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, trial: Trial) -> Iterator[BrokerProcess]:
    """A broker with all four ports; clients may show a certificate."""
    process = BrokerProcess(tmp_path_factory.mktemp("broker"), words_of(trial.settings)).start()
    try:
        yield process
    finally:
        process.close()


def trusting(trial: Trial, role: str = "") -> dict[str, Any]:
    """A client's options: whom it trusts, and the certificate of ``role`` if one is given."""
    options: dict[str, Any] = {
        "tls_trust_certs_file_path": trial.ca, "tls_validate_hostname": True,
        "connection_timeout_ms": 5_000, "operation_timeout_seconds": 5,
    }  # fmt: skip
    if role:
        options["authentication"] = pulsar.AuthenticationTLS(*trial.client(role))
    return options


def ask(url: str, path: str, context: ssl.SSLContext) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of a GET."""
    try:
        with urllib.request.urlopen(url + path, timeout=20, context=context) as reply:
            return reply.status, dict(reply.headers), reply.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, dict(error.headers), error.read()


def dial(url: str, count: int = 1) -> list[socket.socket]:
    where = urlsplit(url)
    address = (where.hostname or "", where.port or 0)
    return [socket.create_connection(address, timeout=20) for _ in range(count)]


def metric(broker: BrokerProcess, name: str) -> float:
    lines = broker.get("/metrics")[1].decode().splitlines()
    return float(next(line.rpartition(" ")[2] for line in lines if line.startswith(name)))


def test_messages_go_through_both_ports(broker: BrokerProcess, trial: Trial) -> None:
    topic = full("both")
    with (
        client_of(broker.service_url_tls, **trusting(trial)) as secure,
        client_of(broker.service_url) as plain,
    ):
        consumer = plain.subscribe(topic, "s", initial_position=EARLIEST)
        producer = secure.create_producer(topic)
        for number in range(20):
            producer.send(b"%d " % number + bytes(number * 20_000))
        for number in range(20):
            message = consumer.receive(RECEIVE_MS)
            assert message.data() == b"%d " % number + bytes(number * 20_000)
            consumer.acknowledge(message)
        back = secure.subscribe(topic, "t", initial_position=EARLIEST)
        for number in range(20):
            assert back.receive(RECEIVE_MS).data().startswith(b"%d " % number)


def test_lookups_name_both_addresses(broker: BrokerProcess, trial: Trial) -> None:
    path = "/lookup/v2/topic/persistent/public/default/t"
    for status, _, body in (
        (*broker.get(path)[:1], {}, broker.get(path)[1]),
        ask(broker.admin_url_tls, path, trial.context()),
    ):
        answer = json.loads(body)
        assert status == 200
        assert (answer["brokerUrl"], answer["brokerUrlTls"]) == (
            broker.service_url, broker.service_url_tls,
        )  # fmt: skip
    status, headers, _ = ask(broker.admin_url_tls, "/admin/v2/brokers/health", trial.context())
    assert status == 200
    assert headers["cache-control"] == "no-store"
    with client_of(broker.admin_url_tls, **trusting(trial)) as client:
        assert client.create_producer(full("by-http")).topic() == full("by-http")


def test_a_client_that_does_not_trust_the_broker_sends_it_nothing(
    broker: BrokerProcess, stranger: Trial
) -> None:
    with (
        client_of(broker.service_url_tls, **trusting(stranger)) as client,
        pytest.raises(pulsar.PulsarException),
    ):
        client.create_producer(full("untrusted"))
    with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
        ask(broker.admin_url_tls, "/metrics", stranger.context())


def test_optional_certificates_are_verified_if_they_are_shown(
    broker: BrokerProcess, trial: Trial, stranger: Trial
) -> None:
    for role in ("", "admin"):
        with client_of(broker.service_url_tls, **trusting(trial, role)) as client:
            client.create_producer(full("optional"))
    wrong = trial.context()
    wrong.load_cert_chain(*stranger.client("admin"))
    with pytest.raises((urllib.error.URLError, OSError)):
        ask(broker.admin_url_tls, "/metrics", wrong)
    assert ask(broker.admin_url_tls, "/metrics", trial.context("admin"))[0] == 200


def test_required_certificates_and_tls_alone(tmp_path: Path, trial: Trial) -> None:
    more = {"tlsRequireTrustedClientCertOnConnect": "true"}
    broker = BrokerProcess(tmp_path, words_of(trial.settings, **more))
    broker.words += ["--set", "brokerServicePort=", "--set", "webServicePort=-1"]
    broker.has_plain_ports = False
    broker.start()
    try:
        assert (broker.service_url, broker.admin_url) == ("", "")
        with pytest.raises((urllib.error.URLError, OSError)):
            ask(broker.admin_url_tls, "/metrics", trial.context())
        with (
            client_of(broker.service_url_tls, **trusting(trial)) as client,
            pytest.raises(pulsar.PulsarException),
        ):
            client.create_producer(full("anonymous"))
        with client_of(broker.service_url_tls, **trusting(trial, "admin")) as client:
            client.create_producer(full("known")).send(b"x")
        context = trial.context("admin")
        _, _, body = ask(broker.admin_url_tls, "/admin/v2/clusters/standalone", context)
        assert "serviceUrl" not in json.loads(body)
        assert json.loads(body)["brokerServiceUrlTls"] == broker.service_url_tls
    finally:
        broker.close()


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_1, ssl.TLSVersion.TLSv1])
def test_old_versions_are_refused(
    broker: BrokerProcess, trial: Trial, version: ssl.TLSVersion
) -> None:
    context = trial.context()
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = ssl.TLSVersion.TLSv1
    context.maximum_version = version
    (sock,) = dial(broker.service_url_tls)
    with sock, pytest.raises(OSError, match=r"(?i)protocol|version|reset|alert"):
        context.wrap_socket(sock, server_hostname="localhost")


def test_any_name_of_the_certificate_may_be_asked_for(broker: BrokerProcess, trial: Trial) -> None:
    for name in ("broker.example", "localhost", "other.example"):
        context = trial.context()
        context.check_hostname = name != "other.example"
        (sock,) = dial(broker.admin_url_tls)
        with sock, context.wrap_socket(sock, server_hostname=name) as secure:
            assert secure.version() in ("TLSv1.2", "TLSv1.3")


def test_each_name_has_its_certificate_on_both_ports(tmp_path: Path) -> None:
    trial = Trial(tmp_path / "certs")
    certificate, key = trial.server("other", "other.example")
    more = {
        "headgateTlsSniCertificateFilePaths": certificate,
        "headgateTlsSniKeyFilePaths": key,
    }
    broker = BrokerProcess(tmp_path, words_of(trial.settings, **more)).start()
    try:
        for url in (broker.service_url_tls, broker.admin_url_tls):
            assert names_shown(trial, url, "other.example") == {"other.example"}
            assert "broker.example" in names_shown(trial, url, "broker.example")
        trial.server("other", "new.example", "other.example", days=20)
        wait_until(lambda: metric(broker, "headgate_tls_reloads_total") == 1)
        for url in (broker.service_url_tls, broker.admin_url_tls):
            assert "new.example" in names_shown(trial, url, "other.example")
    finally:
        broker.close()


def names_shown(trial: Trial, url: str, asked: str) -> set[str]:
    (sock,) = dial(url)
    with sock, trial.context().wrap_socket(sock, server_hostname=asked) as secure:
        found: Any = secure.getpeercert()
        return {name for _, name in found["subjectAltName"]}


def test_new_files_serve_new_connections_and_open_ones_go_on(tmp_path: Path) -> None:
    trial, other = Trial(tmp_path / "certs"), Trial(tmp_path / "other")
    broker = BrokerProcess(tmp_path, words_of(trial.settings)).start()
    try:
        with client_of(broker.service_url_tls, **trusting(trial)) as client:
            producer = client.create_producer(full("reloaded"))
            producer.send(b"before")
            before = metric(broker, "headgate_tls_certificate_expires")
            trial.renew_server(20)
            wait_until(lambda: metric(broker, "headgate_tls_reloads_total") == 1)
            assert metric(broker, "headgate_tls_certificate_expires") < before
            producer.send(b"after")
            # Another authority: of the broker's certificate and of clients'.
            trial_ca = trial.ca
            for name in ("ca.cert.pem", "server.key.pem", "server.cert.pem"):
                (other.folder / name).replace(trial.folder / name)
            wait_until(lambda: metric(broker, "headgate_tls_reloads_total") == 2)
            producer.send(b"after both")
            context = ssl.create_default_context(cafile=trial_ca)
            context.load_cert_chain(*other.client("admin"))
            assert ask(broker.admin_url_tls, "/metrics", context)[0] == 200
            context.load_cert_chain(*trial.client("admin"))  # of the authority of before
            with pytest.raises((urllib.error.URLError, OSError)):
                ask(broker.admin_url_tls, "/metrics", context)
            # Half of a file: what is in force stays, and health says so.
            key = trial.folder / "server.key.pem"
            key.write_bytes(key.read_bytes()[:80])
            wait_until(lambda: metric(broker, "headgate_tls_reload_failures_total") >= 2)
            _, body = broker.get("/admin/v2/brokers/health")
            assert body.startswith(b"ok, but changed files of TLS cannot be used")
            producer.send(b"still")
        assert broker.log().count("changed files of TLS cannot be used") == 1
        assert broker.log().count("new files of TLS are in force") == 2
    finally:
        broker.close()


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"tlsKeyFilePath": ""}, "TLS needs tlsKeyFilePath, which is not set"),
        ({"tlsCertificateFilePath": "/nowhere.pem"}, "/nowhere.pem cannot be read"),
        ({"tlsProtocols": "TLSv1"}, "tlsProtocols: 'TLSv1' is not allowed"),
        ({"bindAddress": "0.0.0.0"}, "is not allowed without authentication"),
    ],
)
def test_bad_starts(tmp_path: Path, trial: Trial, more: dict[str, str], text: str) -> None:
    broker = BrokerProcess(tmp_path, words_of(trial.settings, **more))
    with pytest.raises(StartFailedError, match=text) as caught:
        broker.start()
    assert caught.value.status == 2
    assert not broker.data_path.exists()


def test_other_protocols_end_their_own_connection(broker: BrokerProcess, trial: Trial) -> None:
    (plain,) = dial(broker.service_url_tls)
    plain.sendall(frames.connect())
    assert plain.recv(100) == b""
    (web,) = dial(broker.admin_url_tls)
    web.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
    answer = b""
    with contextlib.suppress(ConnectionError):
        while data := web.recv(4_096):
            answer += data
    assert b"use https:// in place of http://" in answer
    for url in (broker.service_url, broker.admin_url):
        (sock,) = dial(url)
        with sock, pytest.raises(OSError, match=r"(?i)ssl|wrong|reset|eof"):
            trial.context().wrap_socket(sock, server_hostname="localhost")
    for each in (plain, web):
        each.close()
    log = broker.log()
    assert log.count("sent Pulsar's protocol without TLS and is disconnected") == 1
    assert log.count("sent HTTP without TLS and is disconnected") == 1
    assert log.count("not a frame but a TLS handshake") == 1
    why = "TLS at a port of HTTP: https:// belongs to the port webServicePortTls"
    assert log.count(f"is disconnected: {why}") == 1


def stalled(trial: Trial, url: str) -> socket.socket:
    """A client that has sent a whole hello and reads no answer."""
    (sock,) = dial(url)
    outgoing = ssl.MemoryBIO()
    client = trial.context().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    with contextlib.suppress(ssl.SSLWantReadError):
        client.do_handshake()
    sock.sendall(outgoing.read())
    return sock


@pytest.mark.alone
def test_handshakes_that_are_not_finished_harm_nobody_and_end(
    broker: BrokerProcess, trial: Trial
) -> None:
    """Some say nothing, some a part of a hello, some a whole one; all are cut off in time."""
    urls = (broker.service_url_tls, broker.admin_url_tls)
    with client_of(broker.service_url_tls, **trusting(trial)) as client:
        producer = client.create_producer(full("neighbour"))
        alone_s = longest_send(producer)
        began_s = time.monotonic()
        silent = [sock for url in urls for sock in dial(url, HALF_OPEN // 6)]
        partial = [sock for url in urls for sock in dial(url, HALF_OPEN // 6)]
        for sock in partial:
            sock.sendall(b"\x16\x03\x01\x02\x00\x01\x00")
        with ThreadPoolExecutor(1) as pool:
            sending = pool.submit(longest_send, producer)
            whole = [stalled(trial, url) for url in urls for _ in range(HALF_OPEN // 6)]
            beside_s = sending.result()
        assert metric(broker, "headgate_tls_half_open_connections") >= HALF_OPEN * 0.9
        assert beside_s < max(10 * alone_s, 0.5), (alone_s, beside_s)
        ended_s = [ended(sock, began_s) for sock in (*silent, *partial, *whole)]
        assert max(ended_s) < 10 + 8
        assert min(ended_s) > 8
        assert metric(broker, "headgate_tls_half_open_connections") == 0
        producer.send(b"goes on")
    assert broker.log().count("its TLS handshake within 10 s") <= 40, "lines have a bound"


def longest_send(producer: pulsar.Producer) -> float:
    """Seconds of the slowest of many sends, but for two in a hundred."""
    times = []
    for _ in range(SENDS):
        began_s = time.monotonic()
        producer.send(b"x" * 100)
        times.append(time.monotonic() - began_s)
    return sorted(times)[int(SENDS * 0.98)]


def ended(sock: socket.socket, began_s: float) -> float:
    """Seconds from ``began_s`` until the broker ends a connection."""
    with sock:
        sock.settimeout(25)
        with contextlib.suppress(ConnectionError):
            while sock.recv(65_536):
                pass
    return time.monotonic() - began_s


def test_https_connections_are_kept_for_the_next_request(
    broker: BrokerProcess, trial: Trial
) -> None:
    where = urlsplit(broker.admin_url_tls)
    connection = http.client.HTTPSConnection(
        where.hostname or "", where.port, timeout=10, context=trial.context()
    )
    for _ in range(3):
        connection.request("GET", "/admin/v2/brokers/ready")
        reply = connection.getresponse()
        assert (reply.status, reply.read()) == (200, b"ok")
    connection.close()


def test_a_connection_that_is_kept_for_later_does_not_hold_up_the_end(
    tmp_path: Path, trial: Trial
) -> None:
    """Its client does not answer the end of TLS. Each such end logged an error about 0 tasks."""
    broker = BrokerProcess(tmp_path, words_of(trial.settings)).start()
    where = urlsplit(broker.admin_url_tls)
    connection = http.client.HTTPSConnection(
        where.hostname or "", where.port, timeout=10, context=trial.context()
    )
    try:
        connection.request("GET", "/admin/v2/brokers/ready")
        assert connection.getresponse().read() == b"ok"
        assert broker.terminate() == 0
        assert "ERROR" not in broker.log()
    finally:
        connection.close()
        broker.close()


def test_an_old_data_directory_is_tightened(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path).start()
    assert modes(broker.data_path) == {0o700, 0o600}
    assert broker.terminate() == 0
    for path in (broker.data_path, broker.data_path / "metadata.sqlite3"):
        path.chmod(path.stat().st_mode | 0o044)
    broker.start()
    try:
        assert modes(broker.data_path) == {0o700, 0o600}
        assert broker.log().count("other users of this machine could read 2 files and dir") == 1
    finally:
        broker.close()


def modes(path: Path) -> set[int]:
    return {each.stat().st_mode & 0o777 for each in (path, *path.rglob("*"))}


def test_requests_beyond_the_rate_get_429(tmp_path: Path) -> None:
    words = ["--set", "httpRequestsLimitEnabled=true", "--set", "httpRequestsMaxPerSecond=5"]
    broker = BrokerProcess(tmp_path, words).start()
    try:
        answers = [broker.get("/admin/v2/brokers/ready") for _ in range(30)]
        assert {status for status, _ in answers} == {200, 429}
        refused = next(body for status, body in answers if status == 429)
        assert "httpRequestsMaxPerSecond" in json.loads(refused)["reason"]
    finally:
        broker.close()
