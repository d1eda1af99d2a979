"""Bounds on each request of a connection: time for head and body, size of the head."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import weakref
from collections.abc import Callable, Coroutine
from ipaddress import ip_address
from typing import Any

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn import Config
from uvicorn.server import ServerState

from headgate.app.http_bounds import (
    BODY_TIMEOUT_S,
    HEAD_BYTES_MAX,
    HEAD_TIMEOUT_S,
    HEADERS_MAX,
    PIECE_BYTES,
    READ_BYTES_PER_S_MIN,
    UNREAD_BODY_BYTES_MAX,
    WRITE_TIMEOUT_S,
    BoundedHttpProtocol,
)
from headgate.app.http_connections import HttpConnections
from headgate.app.http_turns import HttpTurns
from headgate.broker.connection.address_counts import address_of
from headgate.broker.http_memory import REQUEST_BYTES, HttpMemory
from headgate.policy.settings import Settings
from headgate.testing.clock import ManualClock
from headgate.testing.loop import SimLoop


class Wire(asyncio.Transport):
    """Keeps what the protocol writes. Each is of another address."""

    count = 0

    def __init__(self) -> None:
        Wire.count += 1
        super().__init__({"peername": (str(ip_address(Wire.count)), 5)})
        self.written = b""
        self.closed = self.aborted = False
        self.unread_bytes = 0
        """What the client has not taken."""
        self.is_read = True
        self.is_encrypted = False

    def can_write_eof(self) -> bool:
        return not self.is_encrypted

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self.aborted:
            raise RuntimeError("the handler is closed")  # as uvloop's
        self.written += bytes(data)

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = self.aborted = True

    def is_closing(self) -> bool:
        return self.closed

    def get_write_buffer_size(self) -> int:
        return self.unread_bytes

    def pause_reading(self) -> None:
        self.is_read = False

    def resume_reading(self) -> None:
        self.is_read = True


async def _answer(_scope: Scope, receive: Receive, send: Send) -> None:
    size = 0
    more = True
    while more:
        message = await receive()
        size += len(message.get("body", b""))
        more = message.get("more_body", False)
    body = str(size).encode()
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def reason_of(wire: Wire) -> str:
    """The reason in the JSON body of the last answer."""
    head, _, body = wire.written.rpartition(b"\r\n\r\n")
    assert b"content-type: application/json" in head
    assert b"x-content-type-options: nosniff" in head
    return str(json.loads(body)["reason"])


Story = Callable[[BoundedHttpProtocol, Wire], Coroutine[Any, Any, None]]


def connect(
    loop: asyncio.AbstractEventLoop,
    app: ASGIApp = _answer,
    memory: HttpMemory | None = None,
    turns: HttpTurns | None = None,
) -> tuple[BoundedHttpProtocol, Wire]:
    """An open connection."""
    config = Config(app, log_config=None, lifespan="off", timeout_keep_alive=100)
    protocol = BoundedHttpProtocol(config, ServerState(), {}, loop)
    protocol.memory = memory
    # By virtual time, parsing takes none: on a busy machine a turn would be over at any time.
    protocol.turns = turns or HttpTurns(loop, loop.time)
    wire = Wire()
    protocol.connection_made(wire)
    return protocol, wire


def play(story: Story, app: ASGIApp = _answer, memory: HttpMemory | None = None) -> None:
    """Run a story with an open connection, in virtual time."""
    loop = SimLoop(ManualClock())

    async def whole() -> None:
        protocol, wire = connect(loop, app, memory)
        await story(protocol, wire)
        protocol.connection_lost(None)

    try:
        loop.run_until_complete(whole())
    finally:
        loop.close()


OFFER = (
    b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
    b"HTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA\r\n"
)
"""As the JDK's HTTP client makes it."""


@pytest.mark.parametrize("piece", [1, 7, 10_000])
def test_an_offer_of_another_protocol_is_declined_with_an_answer(piece: int) -> None:
    """The body counts, and so do the requests that follow, however the bytes come."""

    async def story(protocol: BoundedHttpProtocol, wire: Wire) -> None:
        post = b"POST /x HTTP/1.1\r\nHost: h\r\n" + OFFER + b"Content-Length: 5\r\n\r\nhello"
        chunked = (
            b"POST /x HTTP/1.1\r\n" + OFFER + b"Transfer-Encoding: chunked\r\n\r\n"
            b"3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n"
        )
        for request in (post, chunked, b"GET / HTTP/1.1\r\n" + OFFER + b"\r\n", post):
            for start in range(0, len(request), piece):
                protocol.data_received(request[start : start + piece])
            await asyncio.sleep(0.1)
        assert wire.written.count(b"HTTP/1.1 200 ") == 4
        answers = [part[-1:] for part in wire.written.split(b"HTTP/1.1 200 ")[1:]]
        assert answers == [b"5", b"7", b"0", b"5"]
        await asyncio.sleep(BODY_TIMEOUT_S + 1)
        assert not wire.closed

    play(story)


def test_an_offer_amid_others_is_declined_in_its_turn() -> None:
    async def story(protocol: BoundedHttpProtocol, wire: Wire) -> None:
        post = b"POST /x HTTP/1.1\r\n" + OFFER + b"Content-Length: 3\r\n\r\nabc"
        protocol.data_received(post * 2_000)
        await asyncio.sleep(0.1)
        assert wire.written.count(b"HTTP/1.1 200 ") == 2_000
        assert not wire.closed

    play(story)


def test_a_tunnel_is_refused() -> None:
    async def story(protocol: BoundedHttpProtocol, wire: Wire) -> None:
        protocol.data_received(b"CONNECT h:80 HTTP/1.1\r\nHost: h:80\r\n" + OFFER + b"\r\nrest")
        await asyncio.sleep(0.1)
        assert wire.closed

    play(story)


def test_a_head_without_end_is_refused() -> None:
    async def story(protocol: BoundedHttpProtocol, wire: Wire) -> None:
        protocol.data_received(b"GET / HTTP/1.1\r\nX: ")
        for _ in range(HEAD_BYTES_MAX // 1_000):
            protocol.data_received(b"y" * 1_000)
        assert not wire.closed
        protocol.data_received(b"y" * 1_000)
        assert wire.closed
        assert wire.written.startswith(b"HTTP/1.1 400 ")
        assert reason_of(wire) == "Request head too long: 65536 bytes are allowed"

    play(story)


def test_a_long_body_is_no_head_nor_is_the_next_request() -> None:
    async def story(protocol: BoundedHttpProtocol, wire: Wire) -> None:
        size = 3 * HEAD_BYTES_MAX
        protocol.data_received(f"POST / HTTP/1.1\r\nContent-Length: {size}\r\n\r\n".encode())
        protocol.data_received(b"b" * (size - 1))
        # The last byte comes with the begin of another request.
        protocol.data_received(b"b" + b"GET / HTTP/1.1\r\nX: " + b"y" * 100)
        protocol.data_received(b"\r\n\r\n")
        await asyncio.sleep(HEAD_TIMEOUT_S + 1)
        assert wire.written.count(b"HTTP/1.1 200 ") == 2
        assert not wire.closed

    play(story)


CHUNKED = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n"


@pytest.mark.parametrize("begin", [b"0\r\nX: ", b"0\r\n", b"2;"])
@pytest.mark.parametrize("is_answered", [False, True])
def test_what_follows_a_body_without_end_is_refused(begin: bytes, is_answered: bool) -> None:
    """One trailer, many, or an extension of a chunk: the parser keeps what is not whole."""

    async def story(protocol: BoundedHttpProtocol, wire: Wire) -> None:
        protocol.data_received(CHUNKED)
        await asyncio.sleep(0.1)
        protocol.data_received(begin)
        line = b"y: z\r\n" * 200 if begin == b"0\r\n" else b"y" * 1_200
        for _ in range(UNREAD_BODY_BYTES_MAX // len(line)):
            protocol.data_received(line)
        assert not wire.closed
        protocol.data_received(line)
        assert wire.closed
        if is_answered:
            assert wire.written.count(b"HTTP/1.1 ") == 1
        else:
            assert reason_of(wire) == "Trailers too long: 65536 bytes are allowed, and ignored"

    play(story, _refuse_at_once if is_answered else _answer)


@pytest.mark.parametrize("piece", [1, 10_000])
def test_a_trailer_is_no_header(piece: int) -> None:
    """A proxy checks the headers of a request, not what follows its body."""
    seen: list[tuple[bytes, bytes]] = []

    async def look(scope: Scope, receive: Receive, send: Send) -> None:
        await _answer(scope, receive, send)
        seen.extend(scope["headers"])

    async def story(protocol: BoundedHttpProtocol, wire: Wire) -> None:
        sent = CHUNKED + b"0\r\nX-Original-Principal: admin\r\n\r\n" + GET
        for start in range(0, len(sent), piece):
            protocol.data_received(sent[start : start + piece])
        await asyncio.sleep(0.1)
        assert wire.written.count(b"HTTP/1.1 200 ") == 2

    play(story, look)
    assert [name for name, _ in seen] == [b"transfer-encoding", b"host"]


@pytest.mark.parametrize("piece", [100, 100_000])
def test_too_many_headers_are_refused(piece: int) -> None:
    """The shortest take thirty times their bytes as parsed."""
    served = []

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        served.append(len(scope["headers"]))
        await _answer(scope, receive, send)

    async def story(protocol: BoundedHttpProtocol, wire: Wire) -> None:
        for count in (HEADERS_MAX, HEADERS_MAX + 1):
            sent = b"GET / HTTP/1.1\r\n" + b"a:b\r\n" * count + b"\r\n"
            for start in range(0, len(sent), piece):
                protocol.data_received(sent[start : start + piece])
            await asyncio.sleep(0.1)
        assert served == [HEADERS_MAX]
        assert wire.written.count(b"HTTP/1.1 200 ") == 1
        assert reason_of(wire) == "Too many headers: 256 are allowed"
        assert wire.closed

    play(story, serve)


def test_too_many_headers_behind_a_request_end_the_connection_without_an_answer() -> None:
    async def story(protocol: BoundedHttpProtocol, wire: Wire) -> None:
        protocol.data_received(GET + b"GET / HTTP/1.1\r\n" + b"a:b\r\n" * (HEADERS_MAX + 2))
        assert wire.aborted
        assert wire.written == b""

    play(story)


def test_long_heads_count_in_what_all_connections_hold() -> None:
    """Also one that has not ended, and until the request is answered."""
    memory = memory_of()

    async def story(protocol: BoundedHttpProtocol, wire: Wire) -> None:
        protocol.data_received(GET)
        await asyncio.sleep(0.1)
        assert memory.held_bytes == 0
        protocol.data_received(b"GET / HTTP/1.1\r\nX: " + b"y" * 20_000 + b"\r\nZ: ")
        assert 20_000 - REQUEST_BYTES < memory.held_bytes < 20_000
        protocol.data_received(b"\r\n\r\n")
        assert 20_000 < memory.held_bytes < 21_000
        await asyncio.sleep(0.1)
        assert memory.held_bytes == 0
        protocol.data_received(b"GET / HTTP/1.1\r\nX: " + b"y" * 20_000)
        assert 20_000 - REQUEST_BYTES - PIECE_BYTES <= memory.held_bytes < 20_000

    play(story, memory=memory)


@pytest.mark.parametrize("begin", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: x\r\n"])
def test_who_never_ends_a_head_is_cut_off(begin: bytes) -> None:
    async def story(protocol: BoundedHttpProtocol, wire: Wire) -> None:
        if begin:
            protocol.data_received(begin)
        await asyncio.sleep(HEAD_TIMEOUT_S - 0.1)
        assert not wire.closed
        await asyncio.sleep(0.2)
        assert wire.closed
        if begin:
            assert reason_of(wire) == "The head did not arrive within 10 s"
        else:
            assert wire.written == b""

    play(story)


@pytest.mark.parametrize(
    "head", [b"Content-Length: 10\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n5\r\nhel"]
)
def test_who_never_ends_a_body_is_cut_off(head: bytes) -> None:
    async def story(protocol: BoundedHttpProtocol, wire: Wire) -> None:
        protocol.data_received(b"POST / HTTP/1.1\r\n" + head)
        await asyncio.sleep(BODY_TIMEOUT_S - 0.1)
        assert not wire.closed
        await asyncio.sleep(0.2)
        assert wire.closed
        assert wire.written.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
        assert reason_of(wire) == "The body did not arrive within 30 s"

    play(story)


def test_who_is_not_read_from_is_not_late() -> None:
    async def story(protocol: BoundedHttpProtocol, wire: Wire) -> None:
        protocol.data_received(b"POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\nab")
        await asyncio.sleep(1)
        protocol.flow.pause_reading()
        await asyncio.sleep(5 * BODY_TIMEOUT_S)
        assert not wire.closed
        protocol.flow.resume_reading()
        protocol.data_received(b"cd")
        await asyncio.sleep(2 * BODY_TIMEOUT_S)
        assert wire.written.count(b"HTTP/1.1 200 ") == 1
        assert not wire.closed

    play(story)


def test_time_begins_anew_with_each_request() -> None:
    async def story(protocol: BoundedHttpProtocol, wire: Wire) -> None:
        for _ in range(3):
            protocol.data_received(b"GET / HTTP/1.1\r\n")
            await asyncio.sleep(HEAD_TIMEOUT_S - 1)
            protocol.data_received(b"\r\n")
            await asyncio.sleep(20)
        assert wire.written.count(b"HTTP/1.1 200 ") == 3
        assert not wire.closed

    play(story)


GET = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"


def test_who_takes_nothing_of_an_answer_is_cut_off() -> None:
    async def story(protocol: BoundedHttpProtocol, wire: Wire) -> None:
        protocol.data_received(GET)
        wire.unread_bytes = 300_000
        protocol.pause_writing()
        await asyncio.sleep(WRITE_TIMEOUT_S - 1)
        assert not wire.closed
        await asyncio.sleep(2)
        assert wire.aborted

    play(story)


def test_what_is_written_for_one_who_was_cut_off_is_no_failure() -> None:
    """The transport lets the application go on before it says that the connection is lost."""
    ended: list[Exception | None] = []

    async def in_two_parts(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"one", "more_body": True})
        try:
            await send({"type": "http.response.body", "body": b"two"})
            ended.append(None)
        except RuntimeError as error:
            ended.append(error)

    async def story(protocol: BoundedHttpProtocol, wire: Wire) -> None:
        wire.unread_bytes = 300_000
        protocol.data_received(GET)
        protocol.pause_writing()
        await asyncio.sleep(WRITE_TIMEOUT_S + 1)
        assert wire.aborted
        protocol.resume_writing()
        await asyncio.sleep(0.1)

    play(story, in_two_parts)
    assert ended == [None]


def test_who_takes_an_answer_slowly_is_not() -> None:
    async def story(protocol: BoundedHttpProtocol, wire: Wire) -> None:
        protocol.data_received(GET)
        for _ in range(3):
            wire.unread_bytes = 300_000
            protocol.pause_writing()
            await asyncio.sleep(WRITE_TIMEOUT_S - 1)
            wire.unread_bytes = 10_000
            protocol.resume_writing()
            await asyncio.sleep(2)
        assert not wire.closed

    play(story)


def test_who_leaves_the_end_of_an_answer_is_cut_off() -> None:
    """Too little for the transport to say so, and closing would wait for ever."""

    async def story(protocol: BoundedHttpProtocol, wire: Wire) -> None:
        wire.unread_bytes = 500
        protocol.data_received(GET.replace(b"Host", b"Connection: close\r\nHost"))
        await asyncio.sleep(WRITE_TIMEOUT_S - 1)
        assert wire.closed
        assert not wire.aborted
        await asyncio.sleep(2)
        assert wire.aborted

    play(story)


def test_who_takes_it_all_in_time_stays() -> None:
    async def story(protocol: BoundedHttpProtocol, wire: Wire) -> None:
        wire.unread_bytes = 500
        protocol.data_received(GET)
        await asyncio.sleep(1)
        wire.unread_bytes = 0
        await asyncio.sleep(2 * WRITE_TIMEOUT_S)
        assert not wire.closed

    play(story)


def test_who_reads_a_long_answer_ever_so_slowly_is_cut_off() -> None:
    """Each part is read within its time, and yet the answer would be held for hours."""

    async def endless(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while True:
            await send({"type": "http.response.body", "body": b"x", "more_body": True})
            await asyncio.sleep(0.1)

    def read_at(bytes_per_s: float) -> float:
        """Seconds until the connection ends; an hour at most."""
        ended_s = 3_600.0

        async def story(protocol: BoundedHttpProtocol, wire: Wire) -> None:
            nonlocal ended_s
            protocol.data_received(GET)
            begun_s = protocol.loop.time()
            while not wire.aborted and protocol.loop.time() < begun_s + 3_600:
                wire.unread_bytes = 128 * 1024
                protocol.pause_writing()
                await asyncio.sleep(wire.unread_bytes / bytes_per_s)
                if not wire.aborted:
                    protocol.resume_writing()
            if wire.aborted:
                ended_s = protocol.loop.time() - begun_s
            protocol.cycle.disconnected = True
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()

        play(story, endless)
        return ended_s

    assert read_at(1.2 * READ_BYTES_PER_S_MIN) == 3_600
    assert read_at(0.5 * READ_BYTES_PER_S_MIN) < 3 * WRITE_TIMEOUT_S


def memory_of(bytes_max: int = 10_000_000, requests_max: int = 100) -> HttpMemory:
    return HttpMemory(lambda: bytes_max, lambda: requests_max)


def test_requests_of_clients_that_have_left_count_until_they_are_done() -> None:
    """A client that sent requests and left had any number of them carried out at once."""
    memory = memory_of(requests_max=2)
    may_end = asyncio.Event()
    begun: list[str] = []

    async def work(scope: Scope, receive: Receive, send: Send) -> None:
        begun.append(scope["path"])
        await may_end.wait()
        await _answer(scope, receive, send)

    async def story(protocol: BoundedHttpProtocol, _wire: Wire) -> None:
        refused: list[str] = []
        for number in range(5):
            other, wire = connect(protocol.loop, work, memory)
            other.data_received(b"GET /%d HTTP/1.1\r\nHost: h\r\n\r\n" % number)
            await asyncio.sleep(0.1)
            refused += [reason_of(wire)] if wire.written else []
            wire.close()
            other.connection_lost(None)
        assert begun == ["/0", "/1"]
        assert len(refused) == 3
        assert (memory.running, memory.held_bytes) == (2, 2 * REQUEST_BYTES)
        may_end.set()
        await asyncio.sleep(0.1)
        assert (memory.running, memory.held_bytes) == (0, 0)

    play(story)


POST = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n"


def test_what_is_not_http_is_refused_with_a_reason() -> None:
    async def story(protocol: BoundedHttpProtocol, wire: Wire) -> None:
        protocol.data_received(b"nonsense\r\n\r\n")
        assert wire.written.startswith(b"HTTP/1.1 400 Bad Request\r\n")
        assert reason_of(wire) == "Invalid HTTP request received."
        assert wire.closed

    play(story)


def test_too_many_requests_at_once_are_refused_and_their_connection_goes_on() -> None:
    memory = memory_of(requests_max=2)

    async def story(protocol: BoundedHttpProtocol, wire: Wire) -> None:
        others = [connect(protocol.loop, memory=memory) for _ in range(2)]
        for other, _ in others:
            other.data_received(POST)
        protocol.data_received(GET)
        await asyncio.sleep(0.1)
        assert wire.written.startswith(b"HTTP/1.1 503 ")
        assert "maxConcurrentHttpRequests allows 2 in all" in reason_of(wire)
        assert not wire.closed
        others[0][0].connection_lost(None)
        await asyncio.sleep(0.1)
        protocol.data_received(GET)
        await asyncio.sleep(0.1)
        assert wire.written.count(b"HTTP/1.1 200 ") == 1
        others[1][0].data_received(b"x" * 100_000)
        await asyncio.sleep(0.1)
        assert others[1][1].written.startswith(b"HTTP/1.1 200 ")
        others[1][0].connection_lost(None)
        assert (memory.running, memory.held_bytes) == (0, 0)

    play(story, memory=memory)
    assert (memory.running, memory.held_bytes) == (0, 0)


def test_many_requests_of_one_connection_count_as_one() -> None:
    memory = memory_of(requests_max=1)

    async def story(protocol: BoundedHttpProtocol, wire: Wire) -> None:
        protocol.data_received(GET * 100)
        assert 100 * len(GET) < memory.held_bytes < 16 * REQUEST_BYTES + 100 * len(GET)
        await asyncio.sleep(0.1)
        assert wire.written.count(b"HTTP/1.1 200 ") == 100
        assert (memory.running, memory.held_bytes) == (0, 0)

    play(story, memory=memory)


def test_the_connection_with_the_largest_body_ends_when_all_hold_too_much() -> None:
    memory = memory_of(bytes_max=150_000)

    async def story(protocol: BoundedHttpProtocol, wire: Wire) -> None:
        other, other_wire = connect(protocol.loop, memory=memory)
        other.data_received(POST + b"x" * 90_000)
        await asyncio.sleep(0.1)
        protocol.data_received(POST + b"x" * 40_000)
        await asyncio.sleep(0.1)
        assert memory.held_bytes == 130_000 + 2 * REQUEST_BYTES
        protocol.data_received(b"x" * 40_000)
        assert other_wire.closed
        assert other_wire.written.startswith(b"HTTP/1.1 503 ")
        assert "(headgateHttpMemoryMB)" in reason_of(other_wire)
        other.connection_lost(None)
        protocol.data_received(b"x" * 20_000)
        await asyncio.sleep(0.1)
        assert wire.written.endswith(b"100000")
        assert memory.held_bytes == 0

    play(story, memory=memory)


def test_a_client_that_does_not_read_ends_when_all_hold_too_much() -> None:
    memory = memory_of(bytes_max=150_000)

    async def story(protocol: BoundedHttpProtocol, wire: Wire) -> None:
        protocol.data_received(GET)
        await asyncio.sleep(0.1)
        wire.unread_bytes = 140_000
        protocol.pause_writing()
        assert memory.held_bytes == 140_000
        other, other_wire = connect(protocol.loop, memory=memory)
        other.data_received(POST + b"x" * 30_000)
        assert wire.aborted
        assert not other_wire.closed
        other.connection_lost(None)

    play(story, memory=memory)


async def _refuse_at_once(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 404, "headers": []})
    await send({"type": "http.response.body", "body": b""})


def test_a_body_that_comes_after_the_answer_is_not_held() -> None:
    memory = memory_of(bytes_max=150_000)

    async def story(protocol: BoundedHttpProtocol, wire: Wire) -> None:
        protocol.data_received(POST)
        await asyncio.sleep(0.1)
        assert wire.written.startswith(b"HTTP/1.1 404 ")
        protocol.data_received(b"x" * 90_000)
        assert memory.held_bytes == 0

    play(story, _refuse_at_once, memory)


def test_a_request_whose_connection_ends_for_memory_is_not_carried_out() -> None:
    served = []

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        served.append(scope["path"])
        await _answer(scope, receive, send)

    async def story(protocol: BoundedHttpProtocol, wire: Wire) -> None:
        protocol.data_received(GET)
        await asyncio.sleep(0.1)
        assert wire.written.startswith(b"HTTP/1.1 503 ")
        assert wire.closed
        assert served == []

    play(story, serve, memory_of(bytes_max=REQUEST_BYTES - 1))


def test_a_head_that_does_not_end_behind_a_request_ends_the_connection_without_an_answer() -> None:
    """The client would take it for the answer to its first request."""

    async def wait(_scope: Scope, _receive: Receive, _send: Send) -> None:
        await asyncio.sleep(100)

    async def story(protocol: BoundedHttpProtocol, wire: Wire) -> None:
        protocol.data_received(GET + b"GET /more")
        await asyncio.sleep(HEAD_TIMEOUT_S + 1)
        assert wire.aborted
        await asyncio.sleep(100)
        assert wire.written == b""

    play(story, wait)


def test_the_answer_to_an_earlier_request_is_not_mixed_with_a_refusal() -> None:
    memory = memory_of(bytes_max=150_000)

    async def begin(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"a", "more_body": True})
        await asyncio.sleep(100)

    async def story(protocol: BoundedHttpProtocol, wire: Wire) -> None:
        protocol.data_received(GET + POST + b"x" * 90_000)
        await asyncio.sleep(0.1)
        assert wire.written.startswith(b"HTTP/1.1 200 ")
        other, _ = connect(protocol.loop, memory=memory)
        other.data_received(POST + b"x" * 60_000)
        assert wire.aborted
        await asyncio.sleep(100)
        assert b" 503 " not in wire.written
        other.connection_lost(None)

    play(story, begin, memory)


def test_too_many_connections_are_refused_with_a_reason_and_counted_once() -> None:
    others = HttpConnections(Settings(maxHttpServerConnections=2), lambda: 0)

    async def story(protocol: BoundedHttpProtocol, wire: Wire) -> None:
        made = []
        for _ in range(3):
            one = BoundedHttpProtocol(protocol.config, ServerState(), {}, protocol.loop)
            one.others = others
            wire = Wire()
            one.connection_made(wire)
            made.append((one, wire))
        assert [wire.closed for _, wire in made] == [False, False, True]
        assert reason_of(made[2][1]).startswith("Too many connections: maxHttpServerConnections")
        for one, _ in made:
            one.connection_lost(None)
            one.connection_lost(None)
        assert others.refusal("/10.0.0.1:5") == ""

    play(story)


def test_bytes_that_are_no_request_have_one_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "headgate.web")
    noted: list[tuple[int, str, str, str]] = []
    others = HttpConnections(Settings(), lambda: 0, lambda *facts: noted.append(facts))

    async def story(protocol: BoundedHttpProtocol, wire: Wire) -> None:
        for data, text in (
            (b"\x16\x03\x01\x02\x00\x01", "TLS at a port of HTTP: https:// belongs to the port"),
            (b"no request\r\n\r\n", "Invalid HTTP request received."),
        ):
            one = BoundedHttpProtocol(protocol.config, ServerState(), {}, protocol.loop)
            one.others = others
            wire = Wire()
            one.connection_made(wire)
            one.data_received(data)
            assert reason_of(wire).startswith(text)
            address = address_of(wire.get_extra_info("peername"))
            line = caplog.records.pop().getMessage()
            assert line.startswith(f"{address} is disconnected: {text}")
            assert noted.pop() == (400, address, reason_of(wire), "")
            one.connection_lost(None)

    play(story)


def test_a_verified_certificate_reaches_the_application() -> None:
    scopes: list[Any] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        scopes.append(scope["extensions"]["headgate.peer_certificate"])
        await _answer(scope, receive, send)

    certificate = {"subject": ((("commonName", "admin"),),)}

    async def story(protocol: BoundedHttpProtocol, wire: Wire) -> None:
        for each in (certificate, {}, None):
            one = BoundedHttpProtocol(protocol.config, ServerState(), {}, protocol.loop)
            wire = Wire()
            wire._extra = {"peercert": each}  # type: ignore[attr-defined]
            one.connection_made(wire)
            one.data_received(b"GET / HTTP/1.1\r\nhost: b\r\n\r\n")
            await asyncio.sleep(0)
            one.connection_lost(None)

    play(story, app)
    assert scopes == [certificate, None, None]


@pytest.mark.parametrize("requests_count", [1, 3])
def test_a_client_that_vanishes_amid_its_requests_makes_no_error(
    caplog: pytest.LogCaptureFixture, requests_count: int
) -> None:
    """Each connection that was reset with requests behind the present one wrote a traceback into
    the log: uvicorn knows only of the last request that its client is gone."""
    go_on = asyncio.Event()

    async def slowly(scope: Scope, receive: Receive, send: Send) -> None:
        await go_on.wait()
        await _answer(scope, receive, send)

    async def story(protocol: BoundedHttpProtocol, wire: Wire) -> None:
        protocol.data_received(GET * requests_count)
        await asyncio.sleep(0.1)
        wire.abort()  # as uvloop does on a reset, before it says that the connection is lost
        go_on.set()
        await asyncio.sleep(0.1)
        protocol.connection_lost(ConnectionResetError())
        await asyncio.sleep(0.1)
        assert wire.written == b""

    play(story, slowly)
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


HALF = b"POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nabc"


@pytest.mark.parametrize(
    "sent",
    [b"", b"GET / HT", GET, GET * 3, HALF, GET + HALF, b"\xff\r\n\r\n", GET + b"\xff\r\n\r\n"],
)
@pytest.mark.parametrize("error", [None, ConnectionResetError()])
@pytest.mark.parametrize("answers", [True, False])
def test_a_connection_leaves_no_circle(sent: bytes, error: Exception | None, answers: bool) -> None:
    """The collector never visits what lived for a tenth of a second: a circle would stay for ever.
    Each connection of a client left 2 KB and its requests."""
    go_on = asyncio.Event()

    async def slowly(scope: Scope, receive: Receive, send: Send) -> None:
        if not answers:
            await go_on.wait()
        await _answer(scope, receive, send)

    loop = SimLoop(ManualClock())
    ends: list[weakref.ref[object]] = []

    async def story() -> None:
        protocol, wire = connect(loop, slowly)
        ends.append(weakref.ref(protocol))
        protocol.data_received(sent)
        if protocol.cycle is not None:
            ends.append(weakref.ref(protocol.cycle))
        await asyncio.sleep(0.1)
        wire.abort()
        protocol.connection_lost(error)
        go_on.set()
        await asyncio.sleep(200)  # timers of a kept connection end

    gc.collect()
    gc.disable()
    try:
        loop.run_until_complete(story())
        assert [end() for end in ends] == [None] * len(ends)
    finally:
        gc.enable()
        loop.close()


@pytest.mark.parametrize("piece", [1, 100_000])
def test_long_bodies_come_whole_also_with_requests_behind(piece: int) -> None:
    post = b"POST / HTTP/1.1\r\nContent-Length: 200000\r\n\r\n" + b"x" * 200_000

    async def story(protocol: BoundedHttpProtocol, wire: Wire) -> None:
        sent = GET + post + GET
        for start in range(0, len(sent), piece):
            protocol.data_received(sent[start : start + piece])
        await asyncio.sleep(0.1)
        answers = wire.written.split(b"HTTP/1.1 200 ")[1:]
        are_long = [answer.endswith(b"200000") for answer in answers]
        assert are_long == [False, True, False]
        assert not wire.closed
        assert wire.is_read

    play(story)


def test_an_old_client_gets_its_answer_without_chunks() -> None:
    async def in_parts(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for part in (b"one ", b"two"):
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def story(protocol: BoundedHttpProtocol, wire: Wire) -> None:
        protocol.data_received(b"GET / HTTP/1.0\r\n\r\n")
        await asyncio.sleep(0.1)
        head, _, body = wire.written.partition(b"\r\n\r\n")
        assert body == b"one two"
        assert b"transfer-encoding" not in head
        assert b"connection: close" in head
        assert wire.closed

    play(story, in_parts)


def test_who_sends_no_more_gets_what_was_written() -> None:
    """The loop closes the transport of such a client, but over TLS not what waits above it."""

    async def story(protocol: BoundedHttpProtocol, wire: Wire) -> None:
        wire.is_encrypted = True
        assert not protocol.eof_received()
        assert (wire.closed, wire.aborted) == (True, False)

    play(story)


def test_who_sends_no_more_right_behind_a_request_gets_an_answer_that_waits_for_nothing() -> None:
    """Such as a check of health that ends its side at once: the end may be read in the iteration
    in which the request begins, since a new connection waits for its turn."""

    async def story(protocol: BoundedHttpProtocol, wire: Wire) -> None:
        protocol.data_received(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        assert protocol.eof_received(), "the loop closes no transport whose answer is on its way"
        await asyncio.sleep(0.1)
        assert wire.written.startswith(b"HTTP/1.1 200 ")
        assert (wire.closed, wire.aborted) == (True, False)

    play(story)
