"""How long a connection to a web port is kept behind an answer."""

from __future__ import annotations

import asyncio
import weakref

import pytest
from starlette.types import Receive, Scope, Send

from headgate.app.http_bounds import BoundedHttpProtocol
from headgate.app.web import KEEP_ALIVE_S
from headgate.testing.clock import ManualClock
from headgate.testing.loop import SimLoop
from tests.unit.app.test_http_bounds import Wire, connect, play

GET = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"


async def refuse(_scope: Scope, _receive: Receive, send: Send) -> None:
    """As authentication does: the body is not waited for."""
    await send(
        {"type": "http.response.start", "status": 401, "headers": [(b"content-length", b"0")]}
    )
    await send({"type": "http.response.body", "body": b""})


@pytest.mark.parametrize(
    ("first", "later"),
    [
        (GET, b"\r\n"),
        (GET, b"\r"),
        (b"PUT / HTTP/1.1\r\nContent-Length: 2\r\n\r\n", b"{}"),
        (b"PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", b"0\r\n\r\n"),
    ],
    ids=["blank line", "a part of one", "body", "last chunk"],
)
def test_what_is_no_request_keeps_no_connection(first: bytes, later: bytes) -> None:
    """Any byte ended the time of a kept connection. No answer followed, behind which it would begin
    again: so a connection stayed for ever, also without credentials."""

    async def story(protocol: BoundedHttpProtocol, wire: Wire) -> None:
        protocol.timeout_keep_alive = KEEP_ALIVE_S
        protocol.data_received(first)
        await asyncio.sleep(5)
        assert wire.written.startswith(b"HTTP/1.1 401")
        protocol.data_received(later)
        await asyncio.sleep(KEEP_ALIVE_S - 6)
        assert not wire.closed
        await asyncio.sleep(2)
        assert wire.closed

    play(story, refuse)


def test_a_request_keeps_its_connection_while_it_is_served() -> None:
    """Also one that comes in pieces, with blank lines before it, near the end of that time."""

    async def answer_late(scope: Scope, receive: Receive, send: Send) -> None:
        await asyncio.sleep(KEEP_ALIVE_S)
        await refuse(scope, receive, send)

    async def story(protocol: BoundedHttpProtocol, wire: Wire) -> None:
        protocol.timeout_keep_alive = KEEP_ALIVE_S
        for answers in (1, 2, 3):
            for piece in (b"\r\n", GET[:3], GET[3:20], GET[20:] + b"\r\n"):
                protocol.data_received(piece)
                await asyncio.sleep(1)
            await asyncio.sleep(2 * KEEP_ALIVE_S - 8)
            assert wire.written.count(b"HTTP/1.1 401") == answers
            assert not wire.closed

    play(story, answer_late)


def test_an_answer_behind_the_end_keeps_no_connection() -> None:
    """The time for an answer that is not read began, with which a connection that was lost stayed
    for half a minute, and the head of each request behind, of which nothing was charged."""

    async def answer_late(scope: Scope, receive: Receive, send: Send) -> None:
        await asyncio.sleep(1)
        await refuse(scope, receive, send)

    loop = SimLoop(ManualClock())

    async def story() -> None:
        protocol, wire = connect(loop, answer_late)
        lost = weakref.ref(protocol)
        protocol.data_received(GET + GET)
        await asyncio.sleep(0.5)
        wire.abort()
        protocol.connection_lost(ConnectionResetError())
        del protocol
        await asyncio.sleep(1)
        assert lost() is None

    try:
        loop.run_until_complete(story())
    finally:
        loop.close()
