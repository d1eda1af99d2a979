"""What clients of the web port make the broker hold, over real sockets, and how it refuses."""

from __future__ import annotations

import contextlib
import json
import re
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from headgate.base.units import KIB, MIB
from tests.service.clients import wait_until
from tests.service.process import BrokerProcess

TOPICS = 3_000
BOUND_MB = 8
SUBJECTS = 100
LIST = "/admin/v2/persistent/public/default"
JSON = "Content-Type: application/json"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    words = [
        "--set", f"headgateHttpMemoryMB={BOUND_MB}",
        "--set", f"headgateMetricsSubjectsMax={SUBJECTS}",
        "--set", "headgateTelemetryEnabled=false",
    ]  # fmt: skip
    process = BrokerProcess(tmp_path_factory.mktemp("broker"), words).start()
    try:
        assert process.request("PUT", f"{LIST}/{'wide' * 10}/partitions", b"%d" % TOPICS)[0] == 204
        yield process
    finally:
        process.close()


def connected(broker: BrokerProcess, begin: bytes, receive_bytes: int = 0) -> socket.socket:
    """A connection that has sent something."""
    where = urlsplit(broker.admin_url)
    client = socket.socket()
    client.settimeout(20)
    if receive_bytes:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    client.connect((where.hostname or "", where.port or 0))
    client.sendall(begin)
    return client


def head(method: str, path: str, *headers: str, version: str = "1.1") -> bytes:
    lines = [f"{method} {path} HTTP/{version}", "Host: localhost", *headers, "", ""]
    return "\r\n".join(lines).encode()


def answer_of(client: socket.socket) -> tuple[int, str, bytes]:
    """Status, head and body of the answer before the broker closes."""
    answer = b""
    with client, contextlib.suppress(ConnectionResetError):
        while piece := client.recv(65_536):
            answer += piece
    first, _, body = answer.partition(b"\r\n\r\n")
    return int(first.split()[1]), first.decode().lower(), body


def held_bytes(broker: BrokerProcess) -> int:
    page = broker.get("/metrics")[1].decode()
    found = re.search(r'^headgate_client_memory_bytes{.*kind="http"} (\d+)$', page, re.MULTILINE)
    assert found
    return int(found[1])


def names(broker: BrokerProcess) -> list[str]:
    status, body = broker.get(LIST)
    assert status == 200
    listed: list[str] = json.loads(body)
    assert sum("wide" in name for name in listed) == TOPICS
    return listed


def test_a_long_list_comes_in_chunks_and_to_an_old_client_until_the_connection_ends(
    broker: BrokerProcess,
) -> None:
    listed = names(broker)
    old = connected(broker, head("GET", LIST, version="1.0"))
    status, text, body = answer_of(old)
    assert status == 200
    assert "connection: close" in text
    assert "transfer-encoding" not in text
    assert "content-length" not in text
    assert json.loads(body) == listed
    status, text, body = answer_of(connected(broker, head("GET", LIST, "Connection: close")))
    assert "transfer-encoding: chunked" in text
    assert "content-length" not in text
    whole = b""
    while body:
        size, _, rest = body.partition(b"\r\n")
        whole += rest[: int(size, 16)]
        body = rest[int(size, 16) + 2 :]
    assert json.loads(whole) == listed


def test_clients_that_do_not_read_take_little(broker: BrokerProcess) -> None:
    """The kernel takes a part of a list; the whole one, of 300 KB, is charged until it is sent."""
    with contextlib.ExitStack() as stack:
        for _ in range(20):
            client = connected(broker, head("GET", LIST), receive_bytes=4 * KIB)
            stack.enter_context(client)
        names(broker)
        assert held_bytes(broker) <= 20 * 320 * KIB
    wait_until(lambda: held_bytes(broker) < 64 * KIB, 20)


def test_bodies_that_do_not_end_are_bounded_and_others_go_on(broker: BrokerProcess) -> None:
    size = MIB - 10
    post = head("PUT", f"{LIST}/x", JSON, f"Content-Length: {size}")
    clients = [connected(broker, post + b" " * (size - 1)) for _ in range(2 * BOUND_MB)]
    wait_until(lambda: 0 < held_bytes(broker) <= BOUND_MB * MIB, 20)
    assert broker.request("PUT", f"{LIST}/small", b"{}")[0] == 204
    ended = 0
    for client in clients:
        client.settimeout(0.2)
        with contextlib.suppress(TimeoutError, ConnectionError):
            status, text, body = answer_of(client)
            assert status == 503
            assert "application/json" in text
            assert "headgateHttpMemoryMB" in json.loads(body)["reason"]
            ended += 1
    assert ended >= BOUND_MB
    wait_until(lambda: held_bytes(broker) < 64 * KIB, 20)
    assert "a connection to the web port ends" in broker.log()


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET /\xff HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (head("POST", "/metrics", "Connection: close"), 405),
        (head("GET", "/nothing", "Connection: close"), 404),
        (head("GET", "/metrics", "Host: evil.example", "Connection: close"), 400),
    ],
)
def test_every_refusal_has_a_reason(
    broker: BrokerProcess, request_bytes: bytes, status: int
) -> None:
    found, text, body = answer_of(connected(broker, request_bytes))
    assert found == status
    assert "content-type: application/json" in text
    assert json.loads(body)["reason"]


def test_a_page_of_metrics_has_a_bound(broker: BrokerProcess) -> None:
    # Topics have series once they are loaded; their statistics load them.
    path = f"{LIST}/{'wide' * 10}/partitioned-stats?perPartition=false"
    status, body = broker.get(path)
    assert (status, json.loads(body)["metadata"]["partitions"]) == (200, TOPICS)
    status, page = broker.get("/metrics")
    assert status == 200
    assert len(page) < 2 * MIB
    topics = re.findall(rb'^pulsar_in_bytes_total{.*topic="([^"]+)"', page, re.MULTILINE)
    assert len(set(topics)) == len(topics) == SUBJECTS
    left_out = re.search(rb"^headgate_metrics_topics_left_out{.*} (\d+)$", page, re.MULTILINE)
    in_all = re.search(rb"^pulsar_broker_topics_count{.*} (\d+)$", page, re.MULTILINE)
    assert left_out
    assert in_all
    assert int(left_out[1]) == int(in_all[1]) - SUBJECTS
    assert broker.log().count("more than headgateMetricsSubjectsMax") == 1
