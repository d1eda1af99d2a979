"""Peers whose link is lost: their packets go nowhere, and neither side gets a FIN or RST.

A filter of the kernel on the client's socket drops every packet that arrives, before TCP sees it.
So nothing acknowledges what the broker sends, as behind a cable that was pulled out. Linux has such
filters, for users without rights, too.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import ssl
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from headgate.wire import client as frames
from headgate.wire.codes import SubscriptionType
from tests.service.clients import SHARED, client_of, full, receive, send_all, wait_until
from tests.service.process import BrokerProcess
from tests.trial_certificates import Trial

pytestmark = pytest.mark.alone

SO_ATTACH_FILTER = 26
DROP_ALL = struct.pack("=HBBI", 0x06, 0, 0, 0)
"""One instruction: return 0, of a packet keep nothing."""
KEEP_ALIVE_S = 2
SLACK_S = 3.0
EACH = 10
"""Peers of each kind."""
PERMITS = 20
WIDE_BYTES = 100_000
SPARE_FILES = 3
"""Descriptors for what the broker opens by itself."""


def lose_link(peer: socket.socket) -> None:
    """No packet reaches ``peer`` from now on. It sends nothing either, unless it is asked to."""
    program = ctypes.create_string_buffer(DROP_ALL)
    with_length = struct.pack("HP", 1, ctypes.addressof(program))
    socket.socket.setsockopt(peer, socket.SOL_SOCKET, SO_ATTACH_FILTER, with_length)


def dial(url: str, context: ssl.SSLContext | None) -> socket.socket:
    """A connection whose CONNECT was accepted; over TLS with a context."""
    where = urlsplit(url)
    peer = socket.create_connection((where.hostname or "", where.port or 0), timeout=20)
    if context is not None:
        peer = context.wrap_socket(peer, server_hostname="localhost")
    peer.sendall(frames.connect())
    assert peer.recv(4_096)
    return peer


def consume(peer: socket.socket, topic: str, permits: int) -> None:
    """Ask for messages of a Shared subscription that exists, and read none of them."""
    peer.sendall(frames.subscribe(1, 1, topic, "s", kind=SubscriptionType.SHARED))
    assert peer.recv(4_096)
    peer.sendall(frames.flow(1, permits))


def unacked(broker: BrokerProcess, topic: str) -> int:
    name = topic.rpartition("/")[2]
    stats = json.loads(broker.get(f"/admin/v2/persistent/public/default/{name}/stats")[1])
    found: int = stats["subscriptions"]["s"]["unackedMessages"]
    return found


def open_files(broker: BrokerProcess) -> int:
    return len(os.listdir(f"/proc/{broker.pid}/fd"))


@contextmanager
def peers_of(
    broker: BrokerProcess, trial: Trial, topics: tuple[str, str]
) -> Iterator[list[socket.socket]]:
    """Peers with and without TLS: idle, with messages, and with more than they read."""
    small, wide = topics
    found: list[socket.socket] = []
    try:
        for url, context in (
            (broker.service_url, None), (broker.service_url_tls, trial.context()),
        ):  # fmt: skip
            for _ in range(EACH):
                found.append(dial(url, context))
                for topic, permits in ((small, PERMITS), (wide, 1_000)):
                    found.append(dial(url, context))
                    consume(found[-1], topic, permits)
        yield found
    finally:
        for peer in found:
            peer.close()


def test_lost_peers_end_within_two_keep_alives_and_their_messages_go_to_others(
    make_broker: Callable[..., BrokerProcess], tmp_path: Path
) -> None:
    trial = Trial(tmp_path / "certs")
    settings = trial.settings | {"keepAliveIntervalSeconds": str(KEEP_ALIVE_S)}
    broker = make_broker(words=[w for k, v in settings.items() for w in ("--set", f"{k}={v}")])
    broker.start()
    small, wide = full("small"), full("wide")
    with client_of(broker.service_url) as client:
        for topic in (small, wide):
            client.subscribe(topic, "s", SHARED).close()
        send_all(client.create_producer(small), 2 * EACH * PERMITS)
        producer = client.create_producer(wide, batching_enabled=False)
        for _ in range(500):
            producer.send_async(b"x" * WIDE_BYTES, lambda *_: None)
        producer.flush()
        before = open_files(broker)
        with peers_of(broker, trial, (small, wide)) as peers:
            wait_until(lambda: unacked(broker, small) == 2 * EACH * PERMITS)
            assert open_files(broker) >= before + len(peers)
            for peer in peers:
                lose_link(peer)
            began_s = time.monotonic()
            consumer = client.subscribe(small, "s", SHARED)
            found = {each.data() for each in receive(consumer, 2 * EACH * PERMITS)}
            wait_until(lambda: open_files(broker) <= before + SPARE_FILES)
            wait_until(lambda: unacked(broker, wide) == 0)
            took_s = time.monotonic() - began_s
            assert len(found) == 2 * EACH * PERMITS
            assert took_s <= 2 * KEEP_ALIVE_S + SLACK_S
            # None of them was told: the link was lost, not closed.
            assert all(is_without_word(peer) for peer in peers)
        assert broker.log().count("is silent and is disconnected") == len(peers)
        assert producer.send(b"goes on")
    assert "Traceback" not in broker.log()


def is_without_word(peer: socket.socket) -> bool:
    """Whether the kernel of ``peer`` takes its connection for open. What had arrived before stays
    unread."""
    tcp_established = 1
    info = socket.socket.getsockopt(peer, socket.IPPROTO_TCP, socket.TCP_INFO, 1)
    return info[0] == tcp_established
