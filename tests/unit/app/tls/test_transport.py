"""The transport of TLS counts and pauses the one below it, too."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any
from unittest.mock import sentinel

from headgate.app.tls.record_reading import RecordReads, RecordTurns
from headgate.app.tls.transport import (
    UNREAD_BYTES_MAX,
    UNSENT_BYTES_LOW,
    UNSENT_BYTES_MAX,
    WRITE_BYTES,
    TlsTransport,
)


class Layer:
    """One of the transports, or the reads: notes what is called."""

    def __init__(self, name: str, calls: list[str], unsent_bytes: int) -> None:
        self._name = name
        self._calls = calls
        self._unsent_bytes = unsent_bytes
        self.is_full = False

    def get_write_buffer_size(self) -> int:
        return self._unsent_bytes

    def get_protocol(self) -> Any:
        return sentinel.protocol

    def __getattr__(self, name: str) -> Any:
        def call(*values: object, **more: object) -> object:
            self._calls.append(f"{self._name}.{name}{values or ''}{more or ''}")
            return sentinel.answer

        return call


def made() -> tuple[TlsTransport, list[str]]:
    calls: list[str] = []
    inner: Any = Layer("inner", calls, 10)
    plain: Any = Layer("plain", calls, 300)
    reads: Any = Layer("reads", calls, 0)
    return TlsTransport(inner, plain, reads), calls


def test_buffers_are_as_small_as_without_tls() -> None:
    _, calls = made()
    assert calls == [
        f"inner.set_write_buffer_limits{{'high': {UNSENT_BYTES_MAX}}}",
        f"inner.set_read_buffer_limits{{'high': {UNREAD_BYTES_MAX}}}",
    ]


def test_unsent_bytes_are_those_of_both() -> None:
    transport, _ = made()
    assert transport.get_write_buffer_size() == 310


def test_pausing_stops_the_socket_and_closing_reads_it_again() -> None:
    transport, calls = made()
    calls.clear()
    transport.pause_reading()
    transport.resume_reading()
    transport.close()
    assert calls == [
        "inner.pause_reading", "reads.pause_reading",
        "reads.resume_reading", "inner.resume_reading",
        "reads.resume_reading", "inner.close",
    ]  # fmt: skip


def test_the_rest_is_that_of_tls() -> None:
    transport, calls = made()
    calls.clear()
    transport.write(b"a")
    transport.writelines([b"b"])
    transport.abort()
    assert transport.is_closing() is sentinel.answer
    assert transport.is_reading() is sentinel.answer
    assert transport.get_extra_info("peercert") is sentinel.answer
    assert transport.get_protocol() is sentinel.protocol
    transport.set_protocol(sentinel.other)
    transport.set_write_buffer_limits(7, 3)
    assert not transport.can_write_eof()
    assert calls == [
        "inner.write(b'a',)", "inner.writelines([b'b'],)", "inner.abort", "plain.abort",
        "inner.is_closing", "inner.is_reading", "inner.get_extra_info('peercert',)",
        "inner.set_protocol(sentinel.other,)", "inner.set_write_buffer_limits(7, 3)",
    ]  # fmt: skip


class Protocol(asyncio.Protocol):
    """The protocol of a connection."""

    is_stopped = False

    def pause_writing(self) -> None:
        self.is_stopped = True

    def resume_writing(self) -> None:
        self.is_stopped = False


class Socket(asyncio.Transport):
    """The socket's transport."""

    is_aborted = False

    def abort(self) -> None:
        self.is_aborted = True

    def is_closing(self) -> bool:
        return True

    def get_write_buffer_size(self) -> int:
        return 0


class Tls(asyncio.Transport):
    """The loop's transport of TLS. Its buffer stays as large as the most that was in it."""

    def __init__(self, reads_max: int) -> None:
        super().__init__()
        self.protocol = Protocol()
        self.sent = bytearray()
        self.buffer_bytes = 0
        self.parts_most = 0
        """Most parts that came together."""
        self.answers_bytes = 0
        """What it has to send of its own."""
        self.left_bytes = reads_max
        """How much the client reads, before the socket is full."""
        self.socket = Socket()
        turns = RecordTurns(SimpleNamespace(call_soon=lambda _: None), lambda: 0.0)  # type: ignore[arg-type]
        self.reads = RecordReads(Below(self), self.socket, turns)
        self.is_closed = self.is_aborted = False
        self.transport = TlsTransport(self, self.socket, self.reads)

    def read(self, size: int) -> None:
        """The client reads more."""
        self.left_bytes += size
        self.reads.resume_writing()

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        parts = list(list_of_data)
        data = b"".join(parts)
        self.parts_most = max(self.parts_most, len(parts))
        self.buffer_bytes = max(self.buffer_bytes, len(data))
        self.sent += data
        self.left_bytes -= len(data)
        if self.left_bytes <= 0 and not self.is_closed:
            self.reads.pause_writing()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.writelines([data])

    def close(self) -> None:
        self.is_closed = True

    def abort(self) -> None:
        self.is_aborted = True

    def is_closing(self) -> bool:
        return self.is_closed or self.is_aborted

    def get_protocol(self) -> Protocol:
        return self.protocol

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    def get_write_buffer_size(self) -> int:
        return self.answers_bytes

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass


class Below(asyncio.BufferedProtocol):
    """TLS, as the socket's transport calls it. It answers each record."""

    def __init__(self, above: Tls) -> None:
        self._above = weakref.proxy(above)
        self._room = memoryview(bytearray(1_000))

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._room

    def buffer_updated(self, nbytes: int) -> None:
        self._above.answers_bytes += nbytes

    def pause_writing(self) -> None:
        pass

    def resume_writing(self) -> None:
        pass


LARGE = bytes(range(251)) * 4_000


class Answer(bytearray):
    """Bytes of which a test knows whether they are there."""


def test_a_large_answer_is_encrypted_in_pieces() -> None:
    """The buffer of a connection that had got a message of 5 MB stayed at 6 MB: 300 idle clients
    took 1.7 GB, and were charged with nothing."""
    tls = Tls(reads_max=2 * len(LARGE))
    tls.transport.write(LARGE)
    assert bytes(tls.sent) == LARGE
    tls.transport.writelines([b"a", LARGE[:40_000], b"", b"z" * 10])
    assert bytes(tls.sent) == LARGE + b"a" + LARGE[:40_000] + b"z" * 10
    assert tls.buffer_bytes == WRITE_BYTES
    assert not tls.protocol.is_stopped


def test_what_a_client_does_not_read_is_not_encrypted_and_counts() -> None:
    tls = Tls(reads_max=50_000)
    transport = tls.transport
    transport.write(LARGE)
    transport.write(b"behind")
    transport.writelines([b"that", b"too"])
    assert (len(tls.sent), tls.protocol.is_stopped) == (2 * WRITE_BYTES, True)
    assert transport.get_write_buffer_size() == len(LARGE) + 13 - len(tls.sent)
    while transport.get_write_buffer_size() > UNSENT_BYTES_LOW:
        assert tls.protocol.is_stopped
        tls.read(50_000)
    assert not tls.protocol.is_stopped
    tls.read(50_000)
    assert bytes(tls.sent) == LARGE + b"behindthattoo"
    assert transport.get_write_buffer_size() == 0
    assert tls.buffer_bytes == WRITE_BYTES


def test_small_pieces_keep_their_order_while_the_socket_is_full() -> None:
    tls = Tls(reads_max=1)
    for part in (b"first", b"second", b"third"):
        tls.transport.write(part)
    assert (bytes(tls.sent), tls.protocol.is_stopped) == (b"first", False)
    tls.read(100)
    assert bytes(tls.sent) == b"firstsecondthird"


def test_what_waits_is_sent_before_a_close_and_dropped_by_an_abort() -> None:
    closed, aborted = Tls(reads_max=1), Tls(reads_max=1)
    for tls in (closed, aborted):
        tls.transport.write(LARGE)
    closed.transport.close()
    aborted.transport.abort()
    assert bytes(closed.sent) == LARGE
    assert len(aborted.sent) == WRITE_BYTES
    for tls in (closed, aborted):
        tls.transport.write(LARGE)
        tls.read(len(LARGE))
        assert len(tls.sent) in (len(LARGE), WRITE_BYTES)
        assert tls.transport.get_write_buffer_size() == 0


def test_a_connection_that_has_ended_is_freed_without_a_collection() -> None:
    gc.disable()
    try:
        tls = Tls(reads_max=1)
        transport, reads = tls.transport, tls.reads
        transport.write(LARGE)
        reads.connection_lost(None)
        freed = weakref.ref(reads)
        tls.reads = tls.transport = None  # type: ignore[assignment]
        del transport, reads
        assert freed() is None
    finally:
        gc.enable()


def test_small_parts_are_joined_while_they_wait() -> None:
    """A view took 200 bytes beside a PONG of 13: clients that sent PINGs and read nothing took four
    times what they were charged with."""
    tls = Tls(reads_max=1)
    tls.transport.write(b"full")
    for _ in range(2_000):
        tls.transport.write(b"a small part ")
    assert tls.transport.get_write_buffer_size() == 26_000
    tls.transport.write(LARGE[:1_000])
    tls.read(100_000)
    assert bytes(tls.sent) == b"full" + b"a small part " * 2_000 + LARGE[:1_000]
    assert tls.parts_most == 2


def test_a_client_that_ended_its_side_gets_all_that_was_written() -> None:
    """It got what TLS had of a long answer, and the rest was lost, with a line of log for each
    piece."""
    tls = Tls(reads_max=1)
    tls.transport.write(LARGE)
    assert tls.protocol.is_stopped
    tls.reads.eof_received()
    assert bytes(tls.sent) == LARGE
    assert tls.transport.get_write_buffer_size() == 0
    tls.read(len(LARGE))
    assert bytes(tls.sent) == LARGE
    assert tls.protocol.is_stopped, "what it does not read is timed, as it was before"
    tls.transport.write(b"behind its end")
    tls.transport.writelines([b"behind its end"])
    assert bytes(tls.sent) == LARGE
    assert tls.transport.is_closing()
    tls.transport.abort()
    assert tls.socket.is_aborted


def test_what_refers_to_a_connection_that_has_ended_keeps_nothing_of_it() -> None:
    """A request that waits for its turn when its client leaves kept the answers before it, which
    nobody had read: 350 such requests took 1.6 GB."""
    gc.disable()
    try:
        tls = Tls(reads_max=1)
        transport, reads = tls.transport, tls.reads
        answer = Answer(LARGE)
        transport.write(answer)
        freed = weakref.ref(answer), weakref.ref(tls)
        reads.connection_lost(None)
        del tls, reads, answer
        assert [each() for each in freed] == [None, None]
        transport.write(b"nobody reads it")
        assert transport.is_closing()
        assert transport.get_write_buffer_size() == 0
        assert transport.get_extra_info("peername") is None
        transport.close()
        transport.abort()
    finally:
        gc.enable()


def test_who_has_tls_answer_and_reads_nothing_is_cut_off() -> None:
    """The answers to KEY_UPDATEs, 27 bytes each, piled up as long as a request waited in line."""
    key_update = b"\x17\x03\x03\x00\x16" + bytes(22)
    tls = Tls(reads_max=1)

    def ask(count: int) -> None:
        for _ in range(count):
            tls.reads.get_buffer(len(key_update))[: len(key_update)] = key_update
            tls.reads.buffer_updated(len(key_update))

    ask(UNSENT_BYTES_MAX)
    assert not tls.socket.is_aborted, "it reads the answers"
    tls.answers_bytes = 0
    tls.transport.write(b"full")
    ask(UNSENT_BYTES_MAX // len(key_update))
    assert not tls.socket.is_aborted
    ask(1)
    assert tls.socket.is_aborted
    ended = Tls(reads_max=1)
    ended.transport.write(LARGE)
    ended.transport.close()
    ended.answers_bytes = len(LARGE)
    ended.reads.get_buffer(5)[:5] = key_update[:3] + bytes(2)
    ended.reads.buffer_updated(5)
    assert not ended.socket.is_aborted, "a long answer before a close is no such thing"
