"""Bad input over real sockets: only the offender is affected."""

from __future__ import annotations

import json
import os
import random
import socket
import struct
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest

from headgate.wire import client as frames
from headgate.wire.codes import InitialPosition, SubscriptionType
from tests.service.clients import EARLIEST, client_of, full, receive, send_all, wait_until
from tests.service.neighbour import Neighbour, resident_bytes
from tests.service.process import BrokerProcess

pytestmark = pytest.mark.alone

MIB = 1024 * 1024
CUT_OFF_S = 8.0
"""Time enough for a busy broker to end a connection."""
HANDSHAKE_S = 10.0
"""A peer that has not said CONNECT by then is cut off."""
DIALLED: list[socket.socket] = []
ROOM = 48 * MIB
"""How much bad clients may make the broker's memory grow: buffers have bounds."""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    words = ["--set", "managedLedgerCacheSizeMB=8"]
    process = BrokerProcess(tmp_path_factory.mktemp("broker"), words).start()
    try:
        yield process
    finally:
        process.close()


@pytest.fixture(scope="module")
def neighbour(broker: BrokerProcess) -> Iterator[Neighbour]:
    with Neighbour(broker.service_url, broker.pid) as made:
        yield made


@pytest.fixture(scope="module", autouse=True)
def silent(broker: BrokerProcess) -> Iterator[tuple[float, list[socket.socket]]]:
    """Connections that never say CONNECT: one says nothing, others a part of a frame."""
    sockets = [dial(broker) for _ in range(3)]
    sockets[1].sendall(b"\x00\x00")
    sockets[2].sendall(frames.connect()[:-3])
    yield time.monotonic(), sockets
    for each in sockets:
        each.close()


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    """Whatever a test dialled is closed after it."""
    DIALLED.clear()
    yield
    for each in DIALLED:
        each.close()


def dial(broker: BrokerProcess, *, connected: bool = False, web: bool = False) -> socket.socket:
    """A raw connection; ``connected`` has said CONNECT and heard the answer."""
    parts = urlsplit(broker.admin_url if web else broker.service_url)
    made = socket.create_connection((parts.hostname or "", parts.port or 0), timeout=CUT_OFF_S)
    DIALLED.append(made)
    if connected:
        made.sendall(frames.connect())
        assert made.recv(4_096)
    return made


def is_cut_off(client: socket.socket) -> bool:
    """Whether the broker ends the connection in time."""
    client.settimeout(CUT_OFF_S)
    try:
        while client.recv(65_536):
            pass
    except ConnectionError:
        pass
    except TimeoutError:
        return False
    finally:
        client.close()
    return True


def open_files(broker: BrokerProcess) -> int:
    return len(os.listdir(f"/proc/{broker.pid}/fd"))


# Frames -----------------------------------------------------------------------------------------


def test_garbage(broker: BrokerProcess, neighbour: Neighbour) -> None:
    chance = random.Random(7)
    with neighbour.unharmed():
        for number in range(200):
            client = dial(broker, connected=number % 2 == 1)
            client.sendall(b"\xff" * 4 + chance.randbytes(chance.randrange(1, 3_000)))
            assert is_cut_off(client)


def test_requests_of_other_protocols(broker: BrokerProcess, neighbour: Neighbour) -> None:
    with neighbour.unharmed():
        for start in (
            b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x07" * 500,
            b"\x00\x00\x00\x00",
            b"\x00\x00\x00\x08\x00\x00\x00\x09abcdefgh",
        ):
            client = dial(broker)
            client.sendall(start)
            assert is_cut_off(client), start


def test_frames_above_the_limit_and_half_frames(
    broker: BrokerProcess, neighbour: Neighbour
) -> None:
    before = resident_bytes(broker.pid)
    with neighbour.unharmed():
        for size in (5 * MIB + 10 * 1024 + 1, 0x7FFFFFFF, 0xFFFFFFFF):
            client = dial(broker, connected=True)
            client.sendall(struct.pack(">II", size, 8) + b"x" * 100)
            assert is_cut_off(client)
        # Whoever announces five megabytes and sends a few bytes is given no five megabytes.
        halves = [dial(broker, connected=True) for _ in range(200)]
        for client in halves:
            client.sendall(struct.pack(">II", 5 * MIB, 20) + b"x" * 100)
        time.sleep(0.5)
        assert resident_bytes(broker.pid) - before < ROOM
        for client in halves:
            client.close()


def test_commands_before_connect(broker: BrokerProcess, neighbour: Neighbour) -> None:
    topic = full("too-early")
    with neighbour.unharmed():
        for frame in (
            frames.ping(),
            frames.lookup(1, topic),
            frames.producer(1, 1, topic),
            frames.subscribe(1, 1, topic, "s"),
            frames.flow(1, 100),
            frames.send(1, 0, b"\x00" * 20),
        ):
            client = dial(broker)
            client.sendall(frame)
            assert is_cut_off(client)
    assert broker.get(f"/admin/v2/persistent/public/default/{topic[-9:]}/stats")[0] == 404


def test_frames_with_flipped_bits(broker: BrokerProcess, neighbour: Neighbour) -> None:
    chance = random.Random(13)
    topic = full("flipped")
    good = [
        frames.producer(1, 1, topic),
        frames.subscribe(2, 1, topic, "s", kind=SubscriptionType.SHARED),
        frames.flow(1, 10),
        frames.lookup(3, topic),
        frames.get_last_message_id(4, 1),
        frames.unsubscribe(5, 1),
        frames.close_producer(6, 1),
    ]
    with neighbour.unharmed():
        for _ in range(150):
            client = dial(broker, connected=True)
            for frame in good:
                damaged = bytearray(frame)
                damaged[chance.randrange(len(frame))] ^= 1 << chance.randrange(8)
                try:
                    client.sendall(bytes(damaged))
                except ConnectionError:
                    break
            client.close()


# Connections ------------------------------------------------------------------------------------


def test_thousands_of_connections_that_come_and_go(
    broker: BrokerProcess, neighbour: Neighbour
) -> None:
    made = "/admin/v2/persistent/public/default/gone/subscription/s"
    assert broker.request("PUT", made)[0] == 204
    before_files, before = open_files(broker), resident_bytes(broker.pid)
    reset = struct.pack("ii", 1, 0)

    def come_and_go(number: int) -> None:
        client = dial(broker)
        if number % 3 == 0:
            client.sendall(frames.connect() + frames.subscribe(1, 1, full("gone"), "s"))
        if number % 2:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
        client.close()

    with neighbour.unharmed(), ThreadPoolExecutor(4) as pool:
        list(pool.map(come_and_go, range(2_000)))
    wait_until(lambda: open_files(broker) <= before_files + 5)
    assert resident_bytes(broker.pid) - before < ROOM
    stats = json.loads(broker.get("/admin/v2/persistent/public/default/gone/stats")[1])
    assert stats["subscriptions"]["s"]["consumers"] == []


@pytest.mark.parametrize("what", ["ping", "lookup", "subscribe", "bad sums"])
def test_a_client_that_asks_and_never_reads(
    broker: BrokerProcess, neighbour: Neighbour, what: str
) -> None:
    """Answers that nobody reads are not gathered without end: its requests are read no more."""
    topic = full(f"asks-{what.replace(' ', '-')}")
    before = resident_bytes(broker.pid)
    client = dial(broker, connected=True)
    client.sendall(frames.producer(1, 1, topic) + frames.subscribe(2, 1, topic, "s"))
    flood = {
        "ping": frames.ping() * 2_000,
        "lookup": b"".join(frames.lookup(number, topic) for number in range(500)),
        "subscribe": b"".join(
            frames.subscribe(number, number, topic, "s", kind=SubscriptionType.SHARED)
            for number in range(3, 303)
        ),
        "bad sums": frames.send(1, 0, b"\x0e\x01\x00\x00\x00\x00" + b"\x00" * 100) * 300,
    }[what]
    sent = 0
    with neighbour.unharmed():
        client.settimeout(0.5)
        end = time.monotonic() + 0.7
        try:
            while time.monotonic() < end:
                sent += client.send(flood)
        except (TimeoutError, ConnectionError):
            pass
        assert sent > 10_000
        assert resident_bytes(broker.pid) - before < ROOM
    client.close()


def test_a_consumer_that_never_reads_its_socket(
    broker: BrokerProcess, neighbour: Neighbour
) -> None:
    topic, count = full("never-reads"), 200
    with client_of(broker.service_url) as real:
        listening = real.subscribe(topic, "listening", initial_position=EARLIEST)
        send_all(real.create_producer(topic), count, "{}".ljust(200_000))
        client = dial(broker, connected=True)
        before = resident_bytes(broker.pid)
        first = InitialPosition.EARLIEST
        with neighbour.unharmed():
            client.sendall(frames.subscribe(1, 1, topic, "deaf", initial_position=first))
            assert client.recv(4_096)
            client.sendall(frames.flow(1, 100_000))
        assert len(receive(listening, count)) == count
        stats = json.loads(broker.get("/admin/v2/persistent/public/default/never-reads/stats")[1])
        deaf = stats["subscriptions"]["deaf"]
        assert deaf["headgate"]["state"] == "socket_full"
        assert deaf["msgOutCounter"] < count / 2
        assert resident_bytes(broker.pid) - before < ROOM
    # It wakes up and gets the rest.
    client.settimeout(CUT_OFF_S)
    got = 0
    while got < count * 200_000:
        got += len(client.recv(MIB))
    client.close()


# HTTP -------------------------------------------------------------------------------------------

RATE = "/admin/v2/namespaces/public/default/dispatchRate"


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b'"text"',
        b"7",
        b'{"dispatchThrottlingRateInMsg": "many"}',
        b'{"dispatchThrottlingRateInMsg": 1.5}',
        b'{"dispatchThrottlingRateInMsg": 1e400}',
        b'{"dispatchThrottlingRateInMsg": 99999999999999999999}',
        b'{"dispatchThrottlingRateInMsg": NaN}',
        b'{"ratePeriodInSecond": []}',
        b"\xff\xfe\x00",
        b"[" * 100_000,
        b'{"a":' * 50_000,
    ],
    ids=lambda body: body[:40].decode("latin-1"),
)
def test_bodies_that_are_refused(broker: BrokerProcess, body: bytes) -> None:
    status, reply = broker.request("POST", RATE, body)
    assert status == 400
    assert json.loads(reply)["reason"]
    assert b"Traceback" not in reply
    assert broker.get(RATE) == (200, b"")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/admin/v2/nothing", 404),
        ("GET", "/admin/v2/persistent/public/default/%ff%fe/stats", 404),
        ("GET", "/admin/v2/persistent/public/default/" + "x" * 5_000 + "/stats", 412),
        ("PUT", "/admin/v2/persistent/public/%00/t", 412),
        ("PUT", "/admin/v2/persistent/nobody/here/t", 404),
        ("PATCH", "/admin/v2/clusters", 405),
        ("POST", "/admin/v2/brokers/configuration/noSuchSetting/1", 412),
        ("POST", "/admin/v2/brokers/configuration/dispatchThrottlingRateInMsg/many", 412),
    ],
)
def test_requests_that_are_refused(
    broker: BrokerProcess, method: str, path: str, status: int
) -> None:
    found, reply = broker.request(method, path)
    assert found == status, reply
    assert b"Traceback" not in reply


def test_broken_http(broker: BrokerProcess, neighbour: Neighbour) -> None:
    post = f"POST {RATE} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n".encode()
    with neighbour.unharmed():
        for start in (
            b"\xff" * 200 + b"\r\n\r\n",
            b"GET /\r\n\r\n",
            b"GET / HTTP/9.9\r\n\r\n",
            post + b"Content-Length: -5\r\n\r\n",
            post + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
            b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 200_000,
        ):
            client = dial(broker, web=True)
            client.sendall(start)
            client.settimeout(CUT_OFF_S)
            try:
                answer = client.recv(4_096)
            except ConnectionError:
                answer = b""
            assert answer == b"" or answer.split(b" ")[1] in (b"400", b"404", b"505"), start[:60]
            client.close()
        # Bodies that are announced and never end, or never stop, take no memory.
        before = resident_bytes(broker.pid)
        halves = [dial(broker, web=True) for _ in range(100)]
        for client in halves:
            client.sendall(post + b"Content-Length: 100000000\r\n\r\n{")
        endless = dial(broker, web=True)
        endless.sendall(post + b"Content-Length: 200000000\r\n\r\n")
        try:
            for _ in range(200):
                endless.sendall(b" " * MIB)
        except (ConnectionError, TimeoutError):
            pass
        assert resident_bytes(broker.pid) - before < ROOM
        for client in [*halves, endless]:
            client.close()


def test_scrapes_that_are_never_read(broker: BrokerProcess, neighbour: Neighbour) -> None:
    """They share one page, and none of them has it for itself."""
    many = "/admin/v2/persistent/public/default/many"
    assert broker.request("PUT", f"{many}/partitions", b"800")[0] == 204
    assert broker.request("PUT", f"{many}/subscription/s")[0] == 204
    size = len(broker.get("/metrics")[1])
    assert size > 4 * MIB
    before = resident_bytes(broker.pid)
    with neighbour.unharmed():
        for _ in range(30):
            client = dial(broker, web=True)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            client.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
            time.sleep(0.1)
        assert len(broker.get("/metrics")[1]) > size / 2
        assert resident_bytes(broker.pid) - before < ROOM
    assert broker.request("DELETE", f"{many}/partitions?force=true")[0] == 204


# At the end: their time has nearly passed -------------------------------------------------------


def test_peers_that_never_say_connect(
    broker: BrokerProcess, silent: tuple[float, list[socket.socket]]
) -> None:
    begin, sockets = silent
    time.sleep(max(0.0, begin + HANDSHAKE_S - time.monotonic()))
    for client in sockets:
        assert is_cut_off(client)
    log = broker.log()
    assert "sent no CONNECT that was accepted in time and is disconnected" in log
    assert " ERROR " not in log
    assert "Traceback" not in log
