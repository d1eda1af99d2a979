"""What a hostile client sends to the ports of a broker: rounds that follow from one seed each.

A round opens its own connections, closes all of them, and returns how many it opened.
"""

from __future__ import annotations

import contextlib
import random
import socket
import ssl
import struct
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

from headgate.base.positions import Position
from headgate.wire import client as frames
from headgate.wire.commands import COMMANDS
from tests.service.process import BrokerProcess
from tests.sim.admin_requests import KNOWN, TRICKS, Wild, requests
from tests.sim.command_frames import About, every_command
from tests.unit.broker.connection.test_connection_fuzz import any_frame

TIMEOUT_S = 5.0
RESET = struct.pack("ii", 1, 0)
"""``SO_LINGER``: closing sends RST, as a crash does."""
WILD_TOPIC = "persistent://wild/fuzz/topic"
WILD_NAMES = {
    **KNOWN, "tenant": ("wild",), "namespace": ("fuzz",), "name": ("noSuchSetting",),
    "value": ("1",), "backup": ("none",),
}  # fmt: skip
"""Names that no other client uses."""
MIB = 1 << 20


class Ports:
    """The two ports of a broker, and the connections that a round opened to them."""

    def __init__(self, broker: BrokerProcess, chance: random.Random) -> None:
        self.chance = chance
        self.opened = 0
        self._broker = broker
        self._open: list[socket.socket] = []

    def dial(self, *sent: bytes, web: bool = False) -> socket.socket:
        """A connection that has sent something, as far as the broker takes it."""
        where = urlsplit(self._broker.admin_url if web else self._broker.service_url)
        made = socket.create_connection((where.hostname or "", where.port or 0), TIMEOUT_S)
        self.opened += 1
        self._open.append(made)
        for part in sent:
            with contextlib.suppress(OSError):
                made.sendall(part)
        return made

    def close(self) -> None:
        """Close all: with FIN, with RST, or after half of a close."""
        for client in self._open:
            with contextlib.suppress(OSError):
                match self.chance.randrange(3):
                    case 0:
                        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                    case 1:
                        client.shutdown(socket.SHUT_WR)
            client.close()
        self._open.clear()


def read_to_end(client: socket.socket, bytes_max: int = MIB) -> bytes:
    """What comes back until the broker closes, or until there is enough or nothing for a while."""
    found = bytearray()
    client.settimeout(TIMEOUT_S)
    with contextlib.suppress(OSError):
        while len(found) < bytes_max and (piece := client.recv(65_536)):
            found += piece
    return bytes(found)


# -- the binary port -----------------------------------------------------------------------------


def random_bytes(ports: Ports) -> None:
    """Nothing that means anything, with and without a CONNECT before it, with lengths that fit."""
    chance = ports.chance
    for _ in range(120):
        noise = chance.randbytes(chance.choice((1, 3, 8, 100, 3_000, 100_000)))
        head = chance.choice(
            (
                b"",
                struct.pack(">II", len(noise) + 4, len(noise)),
                struct.pack(">II", chance.randrange(1 << 32), chance.randrange(1 << 32)),
                struct.pack(">II", chance.choice((0, 4, 5 * MIB, (1 << 31) - 1)), 2),
            )
        )
        begin = [frames.connect()] if chance.random() < 0.5 else []
        ports.dial(*begin, head + noise)


def flipped_frames(ports: Ports) -> None:
    """Frames of every command with some wrong bits, many on each connection."""
    chance = ports.chance
    good = list(every_command(_about(chance)).values())
    for _ in range(60):
        client = ports.dial(frames.connect())
        for _ in range(30):
            frame = bytearray(chance.choice(good))
            for _ in range(chance.choice((0, 1, 1, 3))):
                frame[chance.randrange(len(frame))] ^= 1 << chance.randrange(8)
            try:
                client.sendall(bytes(frame))
            except OSError:
                break


def wrong_orders(ports: Ports) -> None:
    """Valid commands in any order, about ids that other connections use."""
    chance = ports.chance
    for _ in range(60):
        made = list(every_command(_about(chance), chance.randrange(1 << 20)).values())
        made += [any_frame(chance, list(COMMANDS)) for _ in range(10)]
        chance.shuffle(made)
        begin = [frames.connect()] if chance.random() < 0.9 else []
        ports.dial(*begin, b"".join(made[: chance.randrange(1, len(made))]))


def other_protocols(ports: Ports) -> None:
    """HTTP, TLS, SSH and others on both ports, and each port's protocol on the other one."""
    for web in (False, True):
        for hello in (
            b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            b"SSH-2.0-OpenSSH_9.9\r\n",
            b"*1\r\n$4\r\nPING\r\n",
            b"PROXY TCP4 10.0.0.1 10.0.0.2 1 2\r\n" + frames.connect(),
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + ports.chance.randbytes(508),
            frames.connect() + frames.lookup(1, WILD_TOPIC),
        ):
            ports.dial(hello, web=web)
        context = ssl.create_default_context()
        for _ in range(3):
            client = ports.dial(web=web)
            client.settimeout(1.0)
            with contextlib.suppress(OSError, ValueError):
                context.wrap_socket(client, server_hostname="localhost").close()


def crowds(ports: Ports) -> None:
    """Hundreds of connections at once: half of them said CONNECT, none says more; some create
    clients by the hundred and are gone."""
    for number in range(300):
        ports.dial(*([frames.connect()] if number % 2 else []))
    for _ in range(5):
        many = b"".join(
            frames.producer(number, number, WILD_TOPIC)
            + frames.subscribe(number + 1_000, number, WILD_TOPIC, f"s{number % 7}")
            for number in range(200)
        )
        ports.dial(frames.connect(), many)


def _about(chance: random.Random) -> About:
    """Ids as clients choose them: from 0 on."""
    return About(
        WILD_TOPIC,
        chance.choice(("s", "t")),
        chance.randrange(3),
        chance.randrange(3),
        Position(chance.randrange(4), chance.randrange(-1, 50)),
    )


# -- the web port --------------------------------------------------------------------------------


CLOSING = "/brokers/shutdown"
"""The route that closes the broker."""


def described_requests(ports: Ports, document: dict[str, object]) -> None:
    """Requests that schemathesis makes from the API's description, several on a connection."""
    chance = ports.chance
    every = [
        wild
        for wild in requests(document, chance.randrange(1 << 30), 1, WILD_NAMES)
        if not wild.template.endswith(CLOSING)  # it does what it says
    ]
    chosen = chance.sample(every, min(120, len(every)))
    for start in range(0, len(chosen), 10):
        made = [_as_http(wild) for wild in chosen[start : start + 10]]
        answer = read_to_end(ports.dial(*made[:-1], _last(made[-1]), web=True), 8 * MIB)
        check_answers(answer)


def tricky_paths(ports: Ports) -> None:
    """Paths that leave a folder, end a line, or are no text."""
    chance = ports.chance
    for trick in TRICKS:
        prefix = chance.choice(("", "/admin/v2", "/admin/v2/persistent/wild/fuzz", "/metrics"))
        path = f"{prefix}/{trick}" if trick else f"{prefix}//"
        answer = read_to_end(ports.dial(_last(_head("GET", path)), web=True))
        check_answers(answer)
    raw = bytes(chance.randrange(0x21, 0x100) for _ in range(300))
    for path in (b"/" + raw, b"http://evil.example/", b"*", b"//evil.example/x", b"/%00%0a"):
        client = ports.dial(b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", web=True)
        client.shutdown(socket.SHUT_WR)
        check_answers(read_to_end(client))


def heavy_bodies(ports: Ports) -> None:
    """Deep, wide and huge JSON; too many parameters and headers; bodies that do not end."""
    rate = "/admin/v2/namespaces/wild/fuzz/dispatchRate"
    for body in (
        b"[" * 500_000,
        b'{"a":' * 150_000,
        b'{"a":"' + b"\\u0000" * 150_000 + b'"}',
        b"{" + b",".join(b'"k%d":%d' % (n, n) for n in range(60_000)) + b"}",
        b"1" * 900_000,
        b'{"dispatchThrottlingRateInMsg":' + b"9" * 5_000 + b"}",
        b"\xff" * 900_000,
        b" " * (2 * MIB),
    ):
        kind = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        client = ports.dial(_last(_head("POST", rate, kind)) + body, web=True)
        check_answers(read_to_end(client), allowed=(204, 400, 413))
    for query in ("&".join(f"p{n}={n}" for n in range(2_000)), "=" * 30_000, "%" * 30_000):
        check_answers(read_to_end(ports.dial(_last(_head("GET", f"{rate}?{query}")), web=True)))
    many = "".join(f"X-{n}: {n}\r\n" for n in range(5_000))
    read_to_end(ports.dial(_last(_head("GET", rate, many)), web=True))
    chunked = "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n"
    for _ in range(10):
        client = ports.dial(_head("POST", rate, chunked), web=True)
        with contextlib.suppress(OSError):
            for _ in range(ports.chance.randrange(300)):
                client.sendall(b"1000\r\n" + b" " * 0x1000 + b"\r\n")


def pipelines(ports: Ports) -> None:
    """Many requests at once on each connection, whose answers nobody reads; smuggled ones."""
    for _ in range(10):
        paths = ("/metrics", "/admin/v2/openapi.json", "/admin/v2/clusters")
        many = b"".join(_head("GET", ports.chance.choice(paths)) for _ in range(200))
        ports.dial(many, web=True)
    for headers in (
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Content-Length: -1\r\n",
        "Content-Length: 99999999999999999999\r\n",
        "Host: evil.example\r\n",
        "Expect: 100-continue\r\nContent-Length: 10\r\n",
        "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: x\r\n",
        "Content-Length: 4\r\nContent-Encoding: gzip\r\nContent-Type: application/json\r\n",
    ):
        head = _head("POST", "/admin/v2/tenants/smuggled", headers)
        client = ports.dial(head + b"0\r\n\r\n" + _head("DELETE", "/admin/v2/tenants/x"), web=True)
        client.settimeout(0.3)
        with contextlib.suppress(OSError):
            client.recv(65_536)


def _head(method: str, path: str, headers: str = "") -> bytes:
    return f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n".encode(
        "utf-8", "replace"
    )


def _last(request: bytes) -> bytes:
    """A request after whose answer the broker closes."""
    first, _, rest = request.partition(b"\r\n")
    return first + b"\r\nConnection: close\r\n" + rest


def _as_http(wild: Wild) -> bytes:
    kind = f"Content-Type: application/json\r\nContent-Length: {len(wild.body)}\r\n"
    return _head(wild.method, wild.path, kind) + wild.body


def check_answers(answer: bytes, allowed: tuple[int, ...] = ()) -> None:
    """Each answer is none of an internal error, and tells nothing of the inside."""
    assert b"Traceback" not in answer
    for status in _statuses(answer):
        assert status < 500 or status in (501, 503, 505), answer[:500]
        assert not allowed or status in allowed, answer[:500]


def _statuses(answer: bytes) -> Iterator[int]:
    for line in answer.split(b"\r\n"):
        if line.startswith(b"HTTP/1.") and line[9:12].isdigit():
            yield int(line[9:12])


BINARY_ROUNDS: tuple[Callable[[Ports], None], ...] = (
    random_bytes, flipped_frames, wrong_orders, other_protocols, crowds,
)  # fmt: skip
WEB_ROUNDS: tuple[Callable[[Ports], None], ...] = (tricky_paths, heavy_bodies, pipelines)
