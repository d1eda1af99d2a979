"""Idle clients that use up the file descriptors do not stop publishing."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from headgate.wire import client as frames
from tests.service.clients import EARLIEST, RECEIVE_MS, client_of, full, wait_until
from tests.service.process import BrokerProcess

Make = Callable[..., BrokerProcess]

LIMIT = 256
CROWD = 400
BODY = b"x" * 1_000_000
SEGMENTS = 3
SENT = SEGMENTS * 70
"""Megabytes that fill so many segments of the log, each a new file."""


@contextmanager
def crowd(url: str) -> Iterator[list[socket.socket]]:
    """More idle clients than there are descriptors; those that are refused are closed."""
    host, _, port = url.rpartition("/")[2].partition(":")
    clients = []
    try:
        for _ in range(CROWD):
            client = socket.create_connection((host, int(port)))
            clients.append(client)
            with contextlib.suppress(OSError):  # of one that was refused
                client.sendall(frames.connect(client_version="idle"))
        yield clients
    finally:
        for client in clients:
            client.close()


def descriptors(broker: BrokerProcess) -> int:
    return len(list(Path(f"/proc/{broker.pid}/fd").iterdir()))


def refused(broker: BrokerProcess) -> float:
    lines = broker.get("/metrics")[1].decode().splitlines()
    name = "headgate_connections_refused_total{"
    return float(next(line.rpartition(" ")[2] for line in lines if line.startswith(name)))


def test_publishing_goes_on_through_new_segments_and_an_operator_gets_in(
    make_broker: Make,
) -> None:
    broker, topic = make_broker(), full("crowded")
    broker.wrapper = ["sh", "-c", f'ulimit -n {LIMIT}; exec "$@"', "sh"]
    broker.start()
    with client_of(broker.service_url) as client:
        consumer = client.subscribe(topic, "s", initial_position=EARLIEST)
        producer = client.create_producer(topic, send_timeout_millis=20_000)
        with crowd(broker.service_url):
            wait_until(lambda: refused(broker) >= CROWD - LIMIT)
            if Path("/proc/self/fd").exists():
                assert descriptors(broker) < LIMIT - 16
            for number in range(SENT):
                producer.send(b"%d " % number + BODY)
            for number in range(SENT):
                message = consumer.receive(RECEIVE_MS)
                assert message.data().startswith(b"%d " % number)
                consumer.acknowledge(message)
            status, body = broker.get("/admin/v2/brokers/health")
            assert (status, body.startswith(b"ok, but connections are refused: ")) == (200, True)
            answer = json.loads(broker.get("/admin/v2/headgate/explain")[1])
            assert answer["storage"]["connectionsRefused"] >= CROWD - LIMIT
        wait_until(lambda: broker.get("/admin/v2/brokers/health") == (200, b"ok"), 30)
    assert broker.log().count("connections are refused: all but 64 of 256 file descriptors") == 1
    assert broker.log().count("connections are accepted again: ") == 1
    assert "Too many open files" not in broker.log()
