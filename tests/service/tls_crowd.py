"""A crowd of clients over TLS, in a process of its own.

Run as ``python -m tests.service.tls_crowd URL AUTHORITY COUNT``. It connects them, prints how many
the broker accepted, and waits for a line. Then each sends one message, and it prints how many
receipts came. It closes them when its standard input ends.
"""

from __future__ import annotations

import resource
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from headgate.wire import client as frames
from headgate.wire.codes import CommandType
from headgate.wire.entry import build_entry
from headgate.wire.messages import BaseCommand, MessageMetadata

TIMEOUT_S: Final = 300
DIALLERS: Final = 8
TOPICS: Final = 100
SIGN_OF_LIFE_EACH: Final = 200
"""After so many new clients those of before send a PONG."""
ENTRY: Final = build_entry(
    MessageMetadata(producer_name="crowd", sequence_id=0, publish_time=1), b"x" * 100
)


class Where(NamedTuple):
    """The broker's port, and the authority of its certificate."""

    url: str
    authority: str


class Crowd:
    """The other process."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def next_count(self) -> int:
        """What it prints next."""
        assert self._process.stdout is not None
        return int(self._process.stdout.readline())

    def publish(self) -> int:
        """Let each client send a message; how many have their receipt."""
        assert self._process.stdin is not None
        self._process.stdin.write("publish\n")
        self._process.stdin.flush()
        return self.next_count()


@contextmanager
def crowd(where: Where, count: int) -> Iterator[Crowd]:
    """A crowd that begins to connect. It has ended when this returns."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.service.tls_crowd", *where, str(count)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield Crowd(process)
        process.communicate(timeout=60)
        assert process.returncode == 0
    finally:
        process.kill()
        process.communicate()


def connected(where: Where, context: ssl.SSLContext) -> ssl.SSLSocket | None:
    """A client whose CONNECT was accepted; None if the broker refused it."""
    parts = urlsplit(where.url)
    peer = socket.create_connection((parts.hostname or "", parts.port or 0), TIMEOUT_S)
    try:
        secure = context.wrap_socket(peer, server_hostname="localhost")
        secure.sendall(frames.connect(client_version="crowd"))
        answer = next_command(secure)
    except OSError:
        peer.close()
        return None
    return secure if answer.type == CommandType.CONNECTED else None


def next_command(peer: ssl.SSLSocket) -> BaseCommand:
    """The next command that is no PING."""
    while True:
        total = int.from_bytes(_exactly(peer, 4))
        frame = _exactly(peer, total)
        command = BaseCommand.FromString(frame[4 : 4 + int.from_bytes(frame[:4])])
        if command.type != CommandType.PING:
            return command


def _exactly(peer: ssl.SSLSocket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        piece = peer.recv(size - len(found))
        if not piece:
            raise ConnectionResetError("the broker has closed")
        found += piece
    return found


def _connect_some(where: Where, context: ssl.SSLContext, count: int) -> list[ssl.SSLSocket]:
    peers: list[ssl.SSLSocket] = []
    for number in range(1, count + 1):
        peer = connected(where, context)
        if peer is not None:
            peers.append(peer)
        if number % SIGN_OF_LIFE_EACH == 0:
            for each in peers:
                each.sendall(frames.pong())
    return peers


def _publish(peers: list[ssl.SSLSocket], first: int) -> int:
    """How many receipts came for one message of each."""
    receipts = 0
    for number, peer in enumerate(peers, first):
        topic = f"persistent://public/default/crowd-{number % TOPICS}"
        peer.sendall(frames.producer(1, 1, topic))
        if next_command(peer).type == CommandType.PRODUCER_SUCCESS:
            peer.sendall(frames.send(1, 0, ENTRY))
            receipts += next_command(peer).type == CommandType.SEND_RECEIPT
    return receipts


def main(url: str, authority: str, count: int) -> None:
    """Play the crowd."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    context = ssl.create_default_context(cafile=authority)
    parts = [count // DIALLERS + (n < count % DIALLERS) for n in range(DIALLERS)]
    with ThreadPoolExecutor(DIALLERS) as pool:
        groups = list(
            pool.map(lambda part: _connect_some(Where(url, authority), context, part), parts)
        )
        sys.stdout.write(f"{sum(map(len, groups))}\n")
        sys.stdout.flush()
        if sys.stdin.readline():
            firsts = [sum(map(len, groups[:index])) for index in range(DIALLERS)]
            sys.stdout.write(f"{sum(pool.map(_publish, groups, firsts))}\n")
            sys.stdout.flush()
            sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
