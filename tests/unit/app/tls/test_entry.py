"""A connection passes limits, sends a whole hello and waits for its turn before its handshake."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import itertools
import logging
import socket
import ssl
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop

from headgate.app.tls.entry import (
    HANDSHAKES_PER_TURN,
    HELLO_BYTES_START,
    HandshakePace,
    TlsEntry,
    TlsPort,
)
from headgate.app.tls.files import TlsFiles, load
from headgate.app.tls.profile import Profile
from headgate.app.tls.record_reading import PIECE_RECORDS, RECORDS_TURN_S
from headgate.base.bounded_lines import BoundedLines
from headgate.broker.connection.bounds import HANDSHAKE_TIMEOUT_S
from headgate.broker.tls_status import HandshakeEnd, TlsStatus
from headgate.policy.settings import Settings
from headgate.testing.clock import ManualClock
from headgate.testing.loop import SimLoop
from headgate.wire import client as frames
from tests.trial_certificates import Trial
from tests.unit.app.tls.test_hello import client_hello

TOO_MANY = "there are too many"


class Gate:
    """Counts connections; refuses when it is told to."""

    def __init__(self) -> None:
        self.open: list[str] = []
        self.reason = ""
        self.has_descriptors = True

    def admit(self, _: asyncio.BaseTransport) -> bool:
        return self.has_descriptors

    def refusal(self, _: str) -> str:
        return self.reason

    def added(self, address: str) -> None:
        self.open.append(address)

    def left(self, address: str) -> None:
        self.open.remove(address)


class Socket(asyncio.Transport):
    """A socket's transport without a socket."""

    def __init__(self, port: int | None = 5) -> None:
        """``port`` is None for a client that has left: uvloop asks the system, which knows none."""
        super().__init__({"peername": None if port is None else ("10.0.0.1", port)})
        self.written, self.ended, self.is_paused = b"", "", False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += bytes(data)

    def pause_reading(self) -> None:
        self.is_paused = True

    def is_closing(self) -> bool:
        return bool(self.ended)

    def close(self) -> None:
        self.ended = self.ended or "closed"

    def abort(self) -> None:
        self.ended = "aborted"


class Pace:
    """Notes who waits."""

    def __init__(self) -> None:
        self.waiting: list[TlsEntry] = []

    def wait(self, entry: TlsEntry, network: str) -> None:
        assert network == "10.0.0.1"
        self.waiting.append(entry)

    def lost(self) -> None:
        """One has ended while it waited."""


class Port:
    """A port whose parts are fakes, in virtual time."""

    def __init__(self) -> None:
        self.loop = SimLoop(ManualClock())
        self.gate, self.pace, self.status = Gate(), Pace(), TlsStatus()
        logger = logging.getLogger("headgate.connection")
        pace: Any = self.pace
        self.port = TlsPort(
            self.loop,
            lambda _: Profile().new_contexts(),
            self.gate,
            pace,
            self.status,
            BoundedLines(logger, lambda: 0),
        )

    def connect(self) -> tuple[TlsEntry, Socket]:
        wire = Socket()
        entry = self.port.entry(asyncio.Protocol)
        entry.connection_made(wire)
        return entry, wire

    def run(self, seconds: float) -> None:
        self.loop.run_until_complete(asyncio.sleep(seconds))


@pytest.fixture
def port(caplog: pytest.LogCaptureFixture) -> Any:
    caplog.set_level(logging.INFO)
    made = Port()
    yield made
    made.loop.close()


def feed(entry: TlsEntry, data: bytes) -> None:
    while data:
        room = entry.get_buffer(-1)
        size = min(len(room), len(data))
        room[:size] = data[:size]
        entry.buffer_updated(size)
        data = data[size:]


def test_limits_come_first(port: Port) -> None:
    port.gate.reason = TOO_MANY
    assert port.connect()[1].ended == "aborted"
    port.gate.reason, port.gate.has_descriptors = "", False
    entry, wire = port.connect()
    assert wire.ended == "aborted"
    entry.connection_lost(None)
    assert (port.gate.open, port.status.half_open) == ([], 0)
    assert port.status.handshakes == {HandshakeEnd.REFUSED: 2}


def test_a_hello_in_pieces_waits_for_its_turn_once_it_is_whole(port: Port) -> None:
    entry, wire = port.connect()
    hello = client_hello()
    for each in hello[:-1]:
        feed(entry, bytes([each]))
    assert not port.pace.waiting
    assert not wire.is_paused
    feed(entry, hello[-1:])
    assert port.pace.waiting == [entry]
    assert wire.is_paused, "what follows stays in the socket"
    assert port.status.half_open == 1


def test_a_long_hello_gets_the_room_of_its_record_and_no_more(port: Port) -> None:
    entry, _ = port.connect()
    size = HELLO_BYTES_START * 3
    assert len(entry.get_buffer(1 << 20)) == HELLO_BYTES_START
    feed(entry, b"\x16\x03\x01" + size.to_bytes(2) + b"\x01")
    assert len(entry.get_buffer(1 << 20)) == size - 1


def test_who_is_silent_or_slow_is_disconnected(
    port: Port, caplog: pytest.LogCaptureFixture
) -> None:
    silent, slow = port.connect(), port.connect()
    feed(slow[0], client_hello()[:20])
    port.run(HANDSHAKE_TIMEOUT_S - 0.1)
    assert (silent[1].ended, slow[1].ended) == ("", "")
    port.run(0.2)
    assert (silent[1].ended, slow[1].ended) == ("aborted", "aborted")
    assert (port.gate.open, port.status.half_open) == ([], 0)
    assert port.status.handshakes == {HandshakeEnd.TIMEOUT: 2}
    silent[0].connection_lost(None)
    assert [record.getMessage() for record in caplog.records] == [
        "/10.0.0.1:5 did not begin its TLS handshake within 10 s and is disconnected"
    ] * 2


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (frames.connect(), "sent Pulsar's protocol without TLS"),
        (b"GET / HTTP/1.1\r\nHost: b\r\n\r\n", "sent HTTP without TLS"),
        (b"\xff" * 400, "sent bytes that are no TLS handshake"),
    ],
)
def test_other_protocols_end_with_one_line(
    port: Port, caplog: pytest.LogCaptureFixture, data: bytes, text: str
) -> None:
    entry, wire = port.connect()
    feed(entry, data)
    assert wire.ended == "closed"
    assert (b"HTTP/1.1 400 Bad Request" in wire.written) == data.startswith(b"GET")
    entry.connection_lost(None)
    assert [record.getMessage() for record in caplog.records] == [
        f"/10.0.0.1:5 {text} and is disconnected"
    ]
    assert port.status.handshakes == {HandshakeEnd.FOREIGN: 1}
    assert (port.gate.open, port.pace.waiting) == ([], [])


def test_who_leaves_is_counted_once(port: Port) -> None:
    entry, _ = port.connect()
    entry.eof_received()
    entry.connection_lost(None)
    entry.connection_lost(None)
    assert (port.gate.open, port.status.handshakes) == ([], {HandshakeEnd.FAILED: 1})
    assert entry.begin() == 0, "its turn comes too late"


def test_a_port_that_closes_ends_them_without_a_line(
    port: Port, caplog: pytest.LogCaptureFixture
) -> None:
    wires = [port.connect()[1] for _ in range(3)]
    port.port.close()
    assert {wire.ended for wire in wires} == {"aborted"}
    assert not caplog.records


def test_a_turn_begins_few_handshakes() -> None:
    """Those that have ended meanwhile take nobody's turn."""
    loop = SimLoop(ManualClock())
    turns: list[int] = []
    turn = 0

    class Entry:
        def __init__(self, number: int) -> None:
            self.number = number

        def begin(self) -> int:
            if self.number % 2:
                return 0
            turns.append(turn)
            return 1

    async def story() -> None:
        nonlocal turn
        pace = HandshakePace(loop)
        for number in range(20):
            pace.wait(Entry(number))  # type: ignore[arg-type]
        for turn in range(1, 8):  # noqa: B007
            await asyncio.sleep(0)

    loop.run_until_complete(story())
    loop.close()
    assert len(turns) == 10
    assert max(turns.count(each) for each in turns) == HANDSHAKES_PER_TURN


@pytest.mark.parametrize("crowd", ["10.0.0.1", "2001:db8:0:%x::/64"])
def test_a_crowd_of_one_address_does_not_keep_others_from_their_handshakes(crowd: str) -> None:
    loop = SimLoop(ManualClock())
    begun: list[int] = []

    class Entry:
        def __init__(self, number: int) -> None:
            self.number = number

        def begin(self) -> int:
            begun.append(self.number)
            return 1

    async def story() -> None:
        pace = HandshakePace(loop)
        for number in range(1_000):
            network = crowd.replace("%x", f"{number:x}")
            pace.wait(Entry(number), network)  # type: ignore[arg-type]
        pace.wait(Entry(-1), "10.0.0.2")  # type: ignore[arg-type]
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    loop.run_until_complete(story())
    loop.close()
    assert begun[:4] == [0, -1, 1, 2]


class Echo(asyncio.BufferedProtocol):
    """Sends back what it gets; notes what happens."""

    def __init__(self, notes: list[str]) -> None:
        self.notes = notes
        self.buffer = bytearray(8)
        self.transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        subject = (transport.get_extra_info("peercert") or {}).get("subject", ())
        self.notes.append(f"made {dict(pair for (pair,) in subject)}")

    def get_buffer(self, sizehint: int) -> bytearray:
        return self.buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.transport.write(bytes(self.buffer[:nbytes]))

    def connection_lost(self, exc: Exception | None) -> None:
        self.notes.append(f"lost {type(exc).__name__ if exc else ''}".strip())


class Whole:
    """A port with real contexts, and clients over pairs of sockets."""

    def __init__(self, trial: Trial, *, is_required: bool = False, **more: str) -> None:
        self.loop = asyncio.get_running_loop()
        settings = Settings()
        for key, value in (trial.settings | more).items():
            settings.set(key, value)
        settings.tlsRequireTrustedClientCertOnConnect = is_required
        files = TlsFiles.of(settings)
        loaded = load(files, (Profile(),), files.read())
        self.gate, self.status = Gate(), TlsStatus()
        lines = BoundedLines(logging.getLogger("headgate.connection"), lambda: 0)
        self.notes: list[str] = []
        self.port = TlsPort(
            self.loop,
            lambda name: loaded.contexts_of(name)[0],
            self.gate,
            HandshakePace(self.loop),
            self.status,
            lines,
        )
        self.make: Callable[[], asyncio.BaseProtocol] = lambda: Echo(self.notes)

    async def dial(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        await self.loop.connect_accepted_socket(lambda: self.port.entry(self.make), theirs)  # type: ignore[call-overload]
        return ours

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(10):
            while not condition():
                await asyncio.sleep(0.001)


LOOPS = [asyncio.new_event_loop, uvloop.new_event_loop]


@pytest.mark.parametrize("new_loop", LOOPS, ids=["asyncio", "uvloop"])
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_bytes_right_behind_the_handshake_reach_the_protocol(
    tmp_path: Path, new_loop: Callable[[], asyncio.AbstractEventLoop], version: ssl.TLSVersion
) -> None:
    trial = Trial(tmp_path)

    async def story() -> None:
        whole = Whole(trial)
        context = trial.context("admin")
        context.maximum_version = version
        sock = await whole.dial()
        reader, writer = await asyncio.open_connection(
            sock=sock, ssl=context, server_hostname="broker.example"
        )
        writer.write(b"0123456789" * 1_000)
        assert await reader.readexactly(10_000) == b"0123456789" * 1_000
        assert whole.notes == ["made {'commonName': 'admin'}"]
        assert (whole.gate.open, whole.status.half_open) == ([], 0)
        assert whole.status.handshakes == {HandshakeEnd.DONE: 1}
        writer.close()
        await whole.until(lambda: len(whole.notes) == 2)

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(story())


def test_a_client_gets_the_certificate_of_the_name_that_it_asks_for(tmp_path: Path) -> None:
    """Also a client whose own certificate is required: each context knows the authorities."""
    trial = Trial(tmp_path)
    certificate, key = trial.server("other", "other.example")
    more = {
        "headgateTlsSniCertificateFilePaths": certificate,
        "headgateTlsSniKeyFilePaths": key,
    }

    async def names_of_certificate(whole: Whole, asked: str | None, context: ssl.SSLContext) -> Any:
        reader, writer = await asyncio.open_connection(
            sock=await whole.dial(), ssl=context, server_hostname=asked or ""
        )
        try:
            writer.write(b"x")
            await reader.readexactly(1)
            found = writer.get_extra_info("ssl_object").getpeercert()["subjectAltName"]
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
        return {name for _, name in found}

    async def story() -> None:
        whole = Whole(trial, is_required=True, **more)
        context = trial.context("admin")
        assert await names_of_certificate(whole, "other.example", context) == {"other.example"}
        context.check_hostname = False
        for asked in ("unknown.example", "broker.example", None):
            names = await names_of_certificate(whole, asked, context)
            assert "broker.example" in names, asked
        made_count = sum(note.startswith("made") for note in whole.notes)
        with contextlib.suppress(
            OSError, EOFError
        ):  # TLS 1.3 tells it after its side of the handshake
            await names_of_certificate(whole, "other.example", trial.context())
        await whole.until(lambda: whole.status.handshakes.get(HandshakeEnd.FAILED) == 1)
        assert sum(note.startswith("made") for note in whole.notes) == made_count
        await whole.until(lambda: len(whole.notes) == 2 * made_count)

    asyncio.run(story())


def test_bytes_in_the_flight_of_the_finished_message(tmp_path: Path) -> None:
    """A client of TLS 1.3 may send its first request without a wait for the server."""
    trial = Trial(tmp_path)

    async def story() -> None:
        whole = Whole(trial)
        sock = await whole.dial()
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = trial.context().wrap_bio(incoming, outgoing, server_hostname="localhost")
        with pytest.raises(ssl.SSLWantReadError):
            client.do_handshake()
        await whole.loop.sock_sendall(sock, outgoing.read())
        while True:
            incoming.write(await whole.loop.sock_recv(sock, 65_536))
            try:
                client.do_handshake()
            except ssl.SSLWantReadError:
                continue
            break
        client.write(b"request")
        await whole.loop.sock_sendall(sock, outgoing.read())  # Finished and request in one
        incoming.write(await whole.loop.sock_recv(sock, 65_536))
        assert client.read(100) == b"request"
        sock.close()
        await whole.until(lambda: len(whole.notes) == 2)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(story())


def test_thousands_of_tiny_records_are_spread_over_iterations(tmp_path: Path) -> None:
    """On the loop of a broker: asyncio's own mixes up what does not fit into a small buffer."""
    trial = Trial(tmp_path)

    async def story() -> None:
        whole = Whole(trial)
        looks = itertools.count()
        whole.port.pace = HandshakePace(whole.loop, lambda: next(looks) * RECORDS_TURN_S)
        reader, writer = await asyncio.open_connection(
            sock=await whole.dial(), ssl=trial.context(), server_hostname="broker.example"
        )
        for number in range(3_000):
            writer.write(bytes([number % 251]))
        begun = next(looks)
        echoed = await reader.readexactly(3_000)
        assert echoed == bytes(number % 251 for number in range(3_000))
        assert next(looks) - begun > 3_000 // PIECE_RECORDS
        writer.close()
        await whole.until(lambda: len(whole.notes) == 2)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(story())


@pytest.mark.parametrize("new_loop", LOOPS, ids=["asyncio", "uvloop"])
def test_handshakes_that_fail_end_their_connection_with_a_reason(
    tmp_path: Path,
    new_loop: Callable[[], asyncio.AbstractEventLoop],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    trial, stranger = Trial(tmp_path / "ours"), Trial(tmp_path / "theirs")

    async def story() -> None:
        whole = Whole(trial, is_required=True)
        untrusted = trial.context()
        untrusted.load_cert_chain(*stranger.client("admin"))
        old = trial.context("admin")
        old.set_ciphers("ECDHE-ECDSA-AES128-SHA")
        old.maximum_version = ssl.TLSVersion.TLSv1_2
        for context in (trial.context(), untrusted, stranger.context("admin"), old):
            context.maximum_version = ssl.TLSVersion.TLSv1_2  # a failure comes in the handshake
            sock = await whole.dial()
            with pytest.raises((ssl.SSLError, ConnectionError)):
                await asyncio.open_connection(
                    sock=sock, ssl=context, server_hostname="broker.example"
                )
        gone = await whole.dial()
        await whole.loop.sock_sendall(gone, client_hello())
        await asyncio.sleep(0.05)
        gone.close()
        await whole.until(lambda: whole.status.handshakes[HandshakeEnd.FAILED] == 5)
        assert (whole.gate.open, whole.status.half_open, whole.notes) == ([], 0, [])

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(story())
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 5, lines
    assert "peer did not return a certificate" in lines[0]
    assert "its certificate is refused: unable to get local issuer certificate" in lines[1]
    assert "it left, as a client does that does not trust" in lines[2]
    assert "no shared cipher" in lines[3]


def test_a_client_that_stops_amid_the_handshake_is_disconnected(tmp_path: Path) -> None:
    trial = Trial(tmp_path)

    async def story() -> None:
        whole = Whole(trial)
        sock = await whole.dial()
        await whole.loop.sock_sendall(sock, client_hello())
        entry = next(iter(whole.port.half_open))
        await whole.until(lambda: entry._has_begun)
        assert (await whole.loop.sock_recv(sock, 65_536))[:1] == b"\x16"
        entry._timed_out()
        while await whole.loop.sock_recv(sock, 65_536):
            pass
        assert whole.status.handshakes == {HandshakeEnd.TIMEOUT: 1}
        assert (whole.gate.open, whole.notes) == ([], [])
        sock.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(story())


class Forgetful(Echo):
    """Forgets its transport at its end, as the protocols of both ports do."""

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.transport = None


@pytest.mark.parametrize("ends", ["served", "foreign", "refused", "left"])
def test_an_ended_connection_leaves_no_cycle(tmp_path: Path, ends: str) -> None:
    """On the loop of a broker: asyncio's own leaves one for each handshake that it refuses."""
    trial, ended = Trial(tmp_path), []

    async def served(whole: Whole, context: ssl.SSLContext) -> None:
        reader, writer = await asyncio.open_connection(
            sock=await whole.dial(), ssl=context, server_hostname="localhost"
        )
        writer.write(b"x")
        await reader.read(1)
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    async def story() -> None:
        whole = Whole(trial, is_required=True)
        whole.make = lambda: Forgetful(whole.notes)
        make = whole.port.entry

        def entry(made: Callable[[], asyncio.BaseProtocol]) -> TlsEntry:
            def made_noted() -> asyncio.BaseProtocol:
                protocol = made()
                ended.append(weakref.ref(protocol))
                return protocol

            found = make(made_noted)
            ended.append(weakref.ref(found))
            return found

        whole.port.entry = entry  # type: ignore[method-assign]
        if ends in ("served", "refused"):
            with contextlib.suppress(OSError):
                await served(whole, trial.context("admin" if ends == "served" else ""))
        else:
            sock = await whole.dial()
            sock.send(b"GET / HTTP/1.1\r\n\r\n" if ends == "foreign" else client_hello()[:-5])
            await asyncio.sleep(0.01)
            sock.close()
        await whole.until(lambda: whole.status.half_open == 0)
        await whole.until(lambda: all(each() is None for each in ended))

    gc.collect()
    gc.disable()
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(story())
    finally:
        gc.enable()
    assert len(ended) == (2 if ends == "served" else 1)
