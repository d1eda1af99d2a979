"""A running broker under fire from one seed: it stays alive, quiet, small and complete.

``./dev soak fuzz SEED`` plays on from a seed for ten minutes. A failure names seed and round.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import socket
import time
from collections.abc import Callable, Iterator

import pulsar
import pytest

from headgate.wire import client as frames
from headgate.wire.codes import SubscriptionType
from tests.service.clients import EARLIEST, client_of, full, receive, send_all, wait_until
from tests.service.fuzz_attacks import (
    BINARY_ROUNDS,
    WEB_ROUNDS,
    Ports,
    described_requests,
    read_to_end,
)
from tests.service.neighbour import Neighbour, resident_bytes
from tests.service.process import BrokerProcess

pytestmark = pytest.mark.alone

MIB = 1 << 20
ROOM_BYTES = 64 * MIB
"""What all rounds together may make the broker's memory grow by: its buffers and caches have
bounds, and what they gave back the interpreter keeps for the next."""
LINES_PER_CONNECTION = 12
SPARE_FILES = 12
"""Descriptors for what the broker opens by itself: files of topics and of the log."""
HANDSHAKE_S = 10.0
BROKEN = re.compile(r"\S+ \S+ (ERROR|CRITICAL) |Traceback")
KEPT = full("kept")
KEPT_EACH = 50


class Target:
    """The broker under fire, what must not change, and what was promised."""

    def __init__(self, broker: BrokerProcess) -> None:
        self.broker = broker
        self.promised: list[str] = []
        self._log_at = 0
        assert broker.request("PUT", "/admin/v2/tenants/wild", TENANT)[0] == 204
        assert broker.request("PUT", "/admin/v2/namespaces/wild/fuzz")[0] == 204
        self._client = pulsar.Client(
            broker.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
        )
        self._client.subscribe(KEPT, "keeps").close()
        self._producer = self._client.create_producer(KEPT)
        self.promise()
        self.files = self._open_files()
        self.resident = resident_bytes(broker.pid)
        self.document = json.loads(broker.get("/admin/v2/openapi.json")[1])

    def promise(self) -> None:
        """Publish messages that have their receipts when this returns."""
        first = len(self.promised)
        send_all(self._producer, KEPT_EACH, f"kept-{first}-{{}}")
        self.promised += [f"kept-{first}-{number}" for number in range(KEPT_EACH)]

    def check(self, connections: int, held_open: int = 0) -> None:
        """After a round with so many connections, of which some are still open."""
        broker = self.broker
        assert broker.get("/admin/v2/brokers/health")[0] == 200
        wait_until(lambda: self._open_files() <= self.files + held_open + SPARE_FILES)
        grown = resident_bytes(broker.pid) - self.resident
        assert grown < ROOM_BYTES, f"memory grew by {grown / MIB:.0f} MiB"
        log = broker.log()[self._log_at :]
        self._log_at += len(log)
        lines = log.splitlines()
        assert not [line for line in lines if BROKEN.match(line)], log[-5_000:]
        assert len(lines) < LINES_PER_CONNECTION * connections + 100, len(lines)
        assert all(len(line) < 2_000 for line in lines)

    def is_complete(self) -> None:
        """Every message that had a receipt is there, once and in order."""
        with client_of(self.broker.service_url) as client:
            consumer = client.subscribe(KEPT, "reads", initial_position=EARLIEST)
            found = [each.data().decode() for each in receive(consumer, len(self.promised))]
        assert found == self.promised

    def close(self) -> None:
        with contextlib.suppress(pulsar.AlreadyClosed):
            self._client.close()

    def _open_files(self) -> int:
        return len(os.listdir(f"/proc/{self.broker.pid}/fd"))


TENANT = b'{"allowedClusters": ["standalone"]}'


@pytest.fixture(scope="module")
def seed(request: pytest.FixtureRequest) -> int:
    found: int = request.config.getoption("--fuzz-seed", default=1)
    return found


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    words = ["--set", "managedLedgerCacheSizeMB=8", "--set", "keepAliveIntervalSeconds=5"]
    broker = BrokerProcess(tmp_path_factory.mktemp("broker"), words).start()
    try:
        made = Target(broker)
        yield made
        made.close()
    finally:
        broker.close()


def play(target: Target, seed: int, number: int, attack: Callable[[Ports], None]) -> None:
    """One round, whose failure says how to play it again."""
    ports = Ports(target.broker, random.Random(f"{seed}:{number}"))
    try:
        attack(ports)
        ports.close()
        target.check(ports.opened)
        target.promise()
    except BaseException as error:
        error.add_note(f"./dev soak fuzz {seed}: round {number}, {attack.__name__}")
        raise
    finally:
        ports.close()


def rounds(target: Target) -> list[Callable[[Ports], None]]:
    """One of each kind."""

    def described(ports: Ports) -> None:
        described_requests(ports, target.document)

    return [*BINARY_ROUNDS, described, *WEB_ROUNDS]


def test_rounds_of_everything(target: Target, seed: int, request: pytest.FixtureRequest) -> None:
    """A neighbour publishes and consumes all the time; slow clients hang on from the begin."""
    until = time.monotonic() + 60 * request.config.getoption("--fuzz-minutes", default=0)
    number = 0
    with Neighbour(target.broker.service_url, target.broker.pid) as neighbour:
        while True:
            begun = time.monotonic()
            slow = Ports(target.broker, random.Random(seed))
            clients = [*slow_clients(slow)]
            for attack in rounds(target):
                is_first = number < len(rounds(target))
                with neighbour.unharmed() if is_first else neighbour.served():
                    play(target, seed, number, attack)
                number += 1
            _are_cut_off(clients, begun)
            slow.close()
            target.check(slow.opened)
            if time.monotonic() >= until:
                break
    target.is_complete()


def slow_clients(ports: Ports) -> Iterator[socket.socket]:
    """Of both ports: silent, with a part of a frame or head, or half of a handshake of TLS."""
    tls = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
    for begin in (b"", b"\x00", frames.connect()[:-1], tls):
        yield ports.dial(begin)
    for begin in (b"", b"GET / HT", b"POST /x HTTP/1.1\r\nHost: localhost\r\nX-", tls):
        yield ports.dial(begin, web=True)


def _are_cut_off(clients: list[socket.socket], begun: float) -> None:
    time.sleep(max(0.0, begun + HANDSHAKE_S - time.monotonic()))
    for client in clients:
        before = time.monotonic()
        read_to_end(client)
        assert time.monotonic() - before < 4, client  # less than reading waits for silence


def test_a_peer_whose_machine_is_gone_is_found_and_its_messages_go_to_others(
    target: Target,
) -> None:
    """Without FIN or RST: its process stands still, so nothing answers the broker's pings."""
    topic = full("half-open")
    broker = target.broker
    ports = Ports(broker, random.Random(1))
    with client_of(broker.service_url) as client:
        client.subscribe(topic, "s", pulsar.ConsumerType.Shared).close()
        send_all(client.create_producer(topic), 10)
        gone = ports.dial(frames.connect())
        assert gone.recv(4_096)
        gone.sendall(frames.subscribe(1, 1, topic, "s", kind=SubscriptionType.SHARED))
        assert gone.recv(4_096)
        gone.sendall(frames.flow(1, 100))
        wait_until(lambda: _unacked(broker) == 10)
        consumer = client.subscribe(topic, "s", pulsar.ConsumerType.Shared)
        found = {each.data() for each in receive(consumer, 10)}  # within two keep-alives
        assert len(found) == 10
        consumer.close()
    assert read_to_end(gone) != b""
    ports.close()
    target.check(ports.opened)


def _unacked(broker: BrokerProcess) -> int:
    stats = json.loads(broker.get("/admin/v2/persistent/public/default/half-open/stats")[1])
    unacked: int = stats["subscriptions"]["s"]["unackedMessages"]
    return unacked


def test_what_was_promised_survives_the_end_of_the_broker(target: Target) -> None:
    target.close()
    target.broker.kill()
    target.broker.start()
    target.is_complete()
