"""What one client of a web port does, at random from one seed, and what is left behind it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.types import Receive, Scope, Send
from uvicorn import Config
from uvicorn.server import ServerState

from headgate.app.http_bounds import BoundedHttpProtocol
from headgate.app.http_connections import HttpConnections
from headgate.app.http_turns import HttpTurns
from headgate.app.web import KEEP_ALIVE_S
from headgate.base.units import KIB, MIB
from headgate.broker.http_memory import HttpMemory
from headgate.policy.settings import Settings
from headgate.testing.clock import ManualClock
from headgate.testing.loop import SimLoop
from tests.sim.websim.socket_transport import TLS_CLOSE_S, SimSocket

ADDRESS = "192.0.2.7"
LARGE_BYTES = 1_000_000
PART_BYTES = 40 * KIB
PARTS = 4
SMALL_BYTES = 2
LATE_S = 5.0
STEPS = 25
PAUSES_S = (0.0, 0.0, 0.0, 0.05, 0.05, 1.0, 6.0, 11.0, 29.0, 31.0)
HONEST_PAUSES_S = (0.0, 0.05, 1.0, 6.0, 15.0)
"""Below the time for which a connection is kept, with those amid a request."""

WILD_BYTES = (
    b"\r\n",
    b"\r\n",
    b"\r\n",
    b"\r",
    b"{}",
    b"0\r\n\r\n",
    b"CONNECT h:1 HTTP/1.1\r\nHost: h\r\n\r\n",
    b"\x16\x03\x01\x00",
    b"a" * 3_000,
    b"GET /quick HTTP/1.1\r\nX: " + b"y" * 9_000,
)
"""Blank lines, bytes of a body, and what is no HTTP."""
ONCE = (
    (b"1.1", b"Connection: close\r\n"),
    (b"1.0", b""),
    (b"1.1", b"Expect: 100-continue\r\n"),
)
"""Version and header of a request that may be the only one."""
ANSWER_S = 50.0
"""In which each answer is read at 30 KB/s."""
OFFER = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEA\r\n"
PATHS = (b"/quick", b"/large", b"/parts", b"/late", b"/body")
OTHER_PATHS = (b"/refused", b"/fails", b"/fails-amid", b"/short")


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers by its path; a body is read by ``/body`` alone."""
    path = scope["path"]
    if path == "/fails":
        raise OSError
    if path == "/late":
        await asyncio.sleep(LATE_S)
    if path == "/body":
        while (await receive()).get("more_body", False):
            pass
    status = 401 if path == "/refused" else 200
    await send({"type": "http.response.start", "status": status, "headers": []})
    if path == "/short":
        return
    if path in ("/parts", "/fails-amid"):
        for _ in range(PARTS):
            await send({"type": "http.response.body", "body": bytes(PART_BYTES), "more_body": True})
            await asyncio.sleep(1)
        if path == "/fails-amid":
            raise OSError
    size = LARGE_BYTES if path == "/large" else SMALL_BYTES
    await send({"type": "http.response.body", "body": bytes(size)})


def body_bytes(method: bytes, path: bytes) -> int:
    """The size of the body of its answer, which has zeros alone."""
    if method == b"HEAD":
        return 0
    parts_bytes = PARTS * PART_BYTES if path == b"/parts" else 0
    return parts_bytes + (LARGE_BYTES if path == b"/large" else SMALL_BYTES)


@dataclass(frozen=True)
class Left:
    """What there is when the client has done nothing for long."""

    is_lost: bool
    held_bytes: int
    running: int
    connections: int
    places: int


class WebClient:
    """A client of the web port, on a connection of its own."""

    def __init__(self, seed: int) -> None:
        self.loop = SimLoop(ManualClock())
        self.random = random.Random(seed)
        self.is_tls = self.random.random() < 0.6
        self.asked: list[tuple[bytes, bytes]] = []
        """Method and path of each request."""
        self._memory = HttpMemory(lambda: 64 * MIB, lambda: 100)
        self._connections = HttpConnections(Settings(), self.loop.clock.monotonic_ns)
        self._state = ServerState()

    def connect(self) -> SimSocket:
        """Open the connection."""
        config = Config(
            application, log_config=None, lifespan="off", timeout_keep_alive=KEEP_ALIVE_S
        )
        protocol = BoundedHttpProtocol(config, self._state, {}, self.loop)
        protocol.memory, protocol.others = self._memory, self._connections
        protocol.turns = HttpTurns(self.loop, self.loop.time)
        socket = SimSocket(self.loop, ADDRESS, self.is_tls)
        socket.protocol = protocol
        protocol.connection_made(socket)
        return socket

    def left(self, socket: SimSocket) -> Left:
        """What is left now."""
        return Left(
            socket.is_lost,
            self._memory.held_bytes,
            self._memory.running,
            len(self._state.connections),
            self._connections._counts.total,
        )

    # -- what it sends -----------------------------------------------------------------------

    def request(self, *, is_honest: bool = False) -> bytes:
        """A whole request."""
        choose, path = self.random.choice, self.random.choice(PATHS)
        if not is_honest and self.random.random() < 0.4:
            path = choose(OTHER_PATHS)
        version = b"1.1"
        headers = b"Host: h\r\n"
        if not is_honest:
            version = choose((b"1.1", b"1.1", b"1.1", b"1.0"))
            headers += choose(
                (b"", b"", b"", b"Connection: close\r\n", b"Expect: 100-continue\r\n")
            )
        if self.random.random() < 0.15:
            headers += OFFER
        body = choose((b"", b"", b"x" * 10, b"x" * 100_000))
        method = b"PUT" if body else choose((b"GET", b"GET", b"HEAD"))
        if body and version == b"1.1" and self.random.random() < 0.4:
            headers += b"Transfer-Encoding: chunked\r\n"
            body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
        elif body:
            headers += b"Content-Length: %d\r\n" % len(body)
        self.asked.append((method, path))
        return b"%s %s HTTP/%s\r\n%s\r\n%s" % (method, path, version, headers, body)

    def wild_bytes(self) -> bytes:
        """Whole requests, parts of them, blank lines, what is no HTTP."""
        kind = self.random.random()
        if kind < 0.6:
            return b"".join(self.request() for _ in range(self.random.choice((1, 1, 1, 2, 8))))
        if kind < 0.8:
            whole = self.request()
            at = self.random.choice((1, 5, 20, len(whole) // 2, len(whole) - 1))
            return whole[:at] if self.random.random() < 0.7 else whole[at:]
        return self.random.choice(WILD_BYTES)

    # -- stories -----------------------------------------------------------------------------

    async def live_wildly(self, socket: SimSocket) -> None:
        """Send, read and end at random, then do nothing any more."""
        actions: list[tuple[float, Callable[[], None]]] = [
            (8, lambda: socket.client_send(self.wild_bytes())),
            (2, lambda: socket.client_read(self.random.choice((1, 1_000, 50_000, 10_000_000)))),
            (1, lambda: setattr(socket, "reads_all", not socket.reads_all)),
            (1, lambda: socket.client_updates_keys(self.random.choice((27, 30_000, 60_000)))),
            (0.3, socket.client_ends_tls),
            (0.3, socket.client_ends),
        ]
        weights = [weight for weight, _ in actions]
        for _ in range(self.random.randrange(1, STEPS)):
            _, act = self.random.choices(actions, weights)[0]
            act()
            await asyncio.sleep(self.random.choice(PAUSES_S))
        socket.reads_all = False

    async def live_honestly(self, socket: SimSocket) -> None:
        """Send whole requests, some ahead, some in pieces, and read what comes."""
        socket.reads_all = True
        for _ in range(STEPS // 3):
            data = b"".join(
                self.request(is_honest=True) for _ in range(self.random.choice((1, 1, 3)))
            )
            pieces = self.random.choice((1, 1, 2, 5))
            size = len(data) // pieces + 1
            for start in range(0, len(data), size):
                socket.client_send(data[start : start + size])
                await asyncio.sleep(self.random.choice((0.0, 0.5, 2.0)))
            await asyncio.sleep(self.random.choice(HONEST_PAUSES_S))

    async def ask_once(self, socket: SimSocket) -> None:
        """Send one request, most without keeping the connection, and read the answer slowly."""
        choose = self.random.choice
        method, path = choose((b"GET", b"PUT")), choose(PATHS)
        version, headers = choose(ONCE)
        body = b"x" * 100_000 if method == b"PUT" else b""
        if body:
            headers += b"Content-Length: %d\r\n" % len(body)
        self.asked.append((method, path))
        socket.client_send(b"%s %s HTTP/%s\r\n%s\r\n" % (method, path, version, headers))
        await asyncio.sleep(choose((0.0, 2.0)))
        socket.client_send(body)
        pause_s, rate_bytes = choose((0.1, 1.0, TLS_CLOSE_S - 1)), choose((30_000, 1_000_000))
        for _ in range(int(ANSWER_S / pause_s)):
            await asyncio.sleep(pause_s)
            socket.client_read(int(pause_s * rate_bytes))

    def play(
        self, story: Callable[[SimSocket], Awaitable[None]], silence_s: float
    ) -> tuple[SimSocket, Left]:
        """Play a story on a new connection and wait."""

        async def whole() -> tuple[SimSocket, Left]:
            socket = self.connect()
            await story(socket)
            await asyncio.sleep(silence_s)
            return socket, self.left(socket)

        try:
            return self.loop.run_until_complete(whole())
        finally:
            if asyncio.all_tasks(self.loop):
                self.loop.kill_host(0)
                self.loop.run_until_complete(asyncio.sleep(1))
            self.loop.close()
