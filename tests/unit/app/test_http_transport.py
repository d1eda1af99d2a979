"""The end of a connection to a web port over TLS, with an answer that is not read."""

from __future__ import annotations

import asyncio
import socket
import ssl
from pathlib import Path
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send
from uvicorn import Config
from uvicorn.server import ServerState

from headgate.app import http_bounds
from headgate.app.http_bounds import HEAD_TIMEOUT_S, WRITE_TIMEOUT_S, BoundedHttpProtocol
from headgate.app.http_turns import STARTS_MAX
from headgate.app.tls import entry
from headgate.app.web import KEEP_ALIVE_S
from tests.trial_certificates import Trial
from tests.unit.app.test_http_bounds import Wire, play
from tests.unit.app.tls.test_entry import LOOPS, Whole

ANSWER_BYTES = 3_000_000
CLOSE_S = 0.3
"""In which a client is to end TLS; for the rest of an answer it has more."""


async def answer(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": bytes(ANSWER_BYTES)})


def serve_answer(whole: Whole, state: ServerState) -> None:
    """Have the web port answer each request so; ``state`` has the connections."""
    config = Config(answer, lifespan="off", log_config=None)
    config.load()
    whole.make = lambda: BoundedHttpProtocol(config, state, {})


async def read_late(dialed: Any, context: ssl.SSLContext) -> int:
    """How many bytes of the answer come if most of it is read late."""
    reader, writer = await asyncio.open_connection(
        sock=dialed, ssl=context, server_hostname="localhost", limit=1_024
    )
    writer.write(b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
    await reader.readuntil(b"\r\n\r\n")
    await asyncio.sleep(4 * CLOSE_S)
    chunks = await reader.read(-1)
    writer.close()
    return chunks.count(0)


@pytest.mark.parametrize("new_loop", LOOPS, ids=["asyncio", "uvloop"])
def test_who_asks_for_an_end_has_time_to_read_a_large_answer_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, new_loop: Any
) -> None:
    """The time to end TLS ran from the last write on: who read 5 MB at less than 1 MB/s, and said
    that the connection ends, as many libraries do, got a part."""
    monkeypatch.setattr(entry, "CLOSE_TIMEOUT_S", CLOSE_S)
    trial = Trial(tmp_path)

    async def story() -> None:
        whole, state = Whole(trial), ServerState()
        serve_answer(whole, state)
        async with asyncio.timeout(20):
            found = await read_late(await whole.dial(), trial.context("admin"))
            assert found == ANSWER_BYTES
            while state.connections:
                await asyncio.sleep(0.01)

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(story())


@pytest.mark.parametrize("reads", [False, True])
def test_who_asks_for_an_end_and_does_not_read_is_cut_off(reads: bool) -> None:
    async def story(protocol: BoundedHttpProtocol, wire: Wire) -> None:
        wire.is_encrypted = True
        wire.unread_bytes = ANSWER_BYTES
        protocol.pause_writing()
        protocol.transport.close()
        assert protocol.transport.is_closing()
        assert not wire.closed
        assert not wire.is_read
        if reads:
            wire.unread_bytes = 1_000
            protocol.resume_writing()
            assert not wire.aborted
        else:
            await asyncio.sleep(WRITE_TIMEOUT_S + 1)
            assert wire.aborted
        assert wire.closed

    play(story)


@pytest.mark.parametrize("is_encrypted", [True, False])
@pytest.mark.parametrize(
    ("ends", "left_bytes"),
    [(True, 1_000), (True, 0), (False, 1_000)],
    ids=["ends", "is sent", "goes on"],
)
def test_who_leaves_the_rest_of_an_answer_unread_is_cut_off(
    is_encrypted: bool, ends: bool, left_bytes: int
) -> None:
    """Room to write on ended the only timer. A client that had sent no more and took the last bytes
    never kept its place for ever: the end of TLS waits for them then, without a time of its own."""

    async def story(protocol: BoundedHttpProtocol, wire: Wire) -> None:
        wire.is_encrypted = is_encrypted
        wire.unread_bytes = ANSWER_BYTES
        protocol.pause_writing()
        if ends:
            protocol.transport.close()
        wire.unread_bytes = left_bytes
        protocol.resume_writing()
        await asyncio.sleep(WRITE_TIMEOUT_S - 1)
        assert not wire.aborted
        await asyncio.sleep(2)
        assert wire.aborted

    play(story)


@pytest.mark.parametrize("sent", [b"", b"GET /", b"GET / HTTP/1.1\r\n\r\n"])
def test_who_sends_its_fin_while_tls_has_bytes_of_its_own_keeps_no_place(sent: bytes) -> None:
    """The broker's answers to KEY_UPDATE fill what the kernel takes, and none is one of HTTP. A FIN
    ends TLS, of which the protocol is not told; the socket waited without a time."""

    async def story(protocol: BoundedHttpProtocol, wire: Wire) -> None:
        wire.is_encrypted = True
        protocol.timeout_keep_alive = KEEP_ALIVE_S
        protocol.data_received(sent)
        await asyncio.sleep(1)
        wire.closed, wire.unread_bytes = True, 1_000
        await asyncio.sleep(max(HEAD_TIMEOUT_S, KEEP_ALIVE_S) + WRITE_TIMEOUT_S + 1)
        assert wire.aborted

    play(story)


def test_an_answer_that_fails_and_is_not_read_has_a_time() -> None:
    """Uvicorn ends the connection then, and does not say that the answer is over."""

    async def fail(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"part", "more_body": True})
        raise OSError

    async def story(protocol: BoundedHttpProtocol, wire: Wire) -> None:
        wire.unread_bytes = 1_000
        protocol.data_received(b"GET / HTTP/1.1\r\n\r\n")
        await asyncio.sleep(WRITE_TIMEOUT_S - 1)
        assert wire.closed
        assert not wire.aborted
        await asyncio.sleep(2)
        assert wire.aborted

    play(story, fail)


@pytest.mark.parametrize("sends_notice", [False, True])
def test_an_end_that_waits_for_its_own_notice_has_a_time(sends_notice: bool) -> None:
    """The kernel may be full of an answer of which nothing waits above it: then the notice that
    ends TLS waits, and with the client's FIN the loop has no time for it."""

    async def story(protocol: BoundedHttpProtocol, wire: Wire) -> None:
        wire.is_encrypted = True
        protocol.timeout_keep_alive = KEEP_ALIVE_S
        protocol.data_received(b"GET / HTTP/1.1\r\n\r\n")
        await asyncio.sleep(1)
        if sends_notice:
            protocol.eof_received()
        else:
            await asyncio.sleep(KEEP_ALIVE_S)
        assert wire.closed
        wire.unread_bytes = 24
        await asyncio.sleep(2 * WRITE_TIMEOUT_S + 1)
        assert wire.aborted

    play(story)


def test_a_request_that_is_not_begun_because_its_connection_ends_keeps_no_place() -> None:
    """It waited for its turn while the client sent its FIN over TLS. No answer followed, behind
    which the time of the end would begin, and the request had stopped all other times."""

    async def story(protocol: BoundedHttpProtocol, wire: Wire) -> None:
        wire.is_encrypted = True
        protocol._turns.start(lambda: STARTS_MAX)  # others use up the turn
        protocol.data_received(b"GET / HTTP/1.1\r\n\r\n")
        wire.closed, wire.unread_bytes = True, 24  # TLS ends, and tells the protocol nothing
        await asyncio.sleep(WRITE_TIMEOUT_S + 1)
        assert wire.written == b""
        assert wire.aborted

    play(story)


@pytest.mark.parametrize("new_loop", LOOPS, ids=["asyncio", "uvloop"])
def test_who_sends_no_more_and_does_not_read_the_end_keeps_no_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, new_loop: Any
) -> None:
    monkeypatch.setattr(entry, "CLOSE_TIMEOUT_S", CLOSE_S)
    monkeypatch.setattr(http_bounds, "WRITE_TIMEOUT_S", 1.0)
    trial = Trial(tmp_path)

    async def story() -> None:
        whole, state = Whole(trial), ServerState()
        serve_answer(whole, state)
        loop = asyncio.get_running_loop()
        with await whole.dial() as dialed:
            received, sent = ssl.MemoryBIO(), ssl.MemoryBIO()
            client = trial.context("admin").wrap_bio(received, sent, server_hostname="localhost")
            is_shaken = False
            while not is_shaken:
                try:
                    client.do_handshake()
                    client.write(b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
                    is_shaken = True
                except ssl.SSLWantReadError:
                    pass
                await loop.sock_sendall(dialed, sent.read())
                if not is_shaken:
                    received.write(await loop.sock_recv(dialed, 65_536))
            await asyncio.sleep(CLOSE_S)
            dialed.shutdown(socket.SHUT_WR)
            left_bytes = ANSWER_BYTES - 200_000
            while left_bytes > 0:
                left_bytes -= len(await loop.sock_recv(dialed, 65_536))
            await whole.until(lambda: not state.connections)

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(story())
