"""Crowds of clients that make a broker hold memory, in a process of their own.

Run as ``python -m tests.service.client_loads URL LOAD COUNT``: it prints how many clients the
broker has accepted, and a line once all had their try. It goes on until its standard input ends,
and then closes them.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import resource
import select
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Final

from headgate.base.units import KIB
from headgate.wire import client as frames
from headgate.wire.codes import CommandType
from headgate.wire.encode import encode_frame
from headgate.wire.messages import BaseCommand

TOPIC: Final = "persistent://public/default/crowded"
DESCRIPTION_BYTES: Final = 63 * KIB
PRODUCERS_PER_CONNECTION: Final = 100
HALF_FRAME_BYTES: Final = 256 * KIB
PINGS: Final = frames.ping() * 200
_pinged: Final[dict[socket.socket, int]] = {}
"""How much of :data:`PINGS` each client has sent."""
ROUND_S: Final = 0.2
"""Time for one round of all clients."""
TRY_TIMEOUT_S: Final = 600
CONNECT_TIMEOUT_S: Final = 120
SPARE_DESCRIPTORS: Final = 50
NICE: Final = 10
SIGN_OF_LIFE_ROUNDS: Final = 50
"""An idle client answers PINGs once in so many rounds."""


class Load(Enum):
    """What each client of a crowd does."""

    PING = "ping"
    """It sends PINGs and reads nothing."""
    DESCRIBE = "describe"
    """It tries to create a producer with a description of 64 KiB, again and again."""
    IDLE = "idle"
    """It answers PINGs."""
    HALF = "half"
    """It sends half a frame."""


@contextmanager
def crowd(url: str, load: Load, count: int) -> Iterator[None]:
    """A crowd in a process of its own, from the moment when all had their try."""
    command = [sys.executable, "-m", "tests.service.client_loads", url, load.value, str(count)]
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,  # else select misses a line that was read with the one before
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        for line in (f"{connections_of(load, count)} connected\n", "ready\n"):
            readable, _, _ = select.select([process.stdout], [], [], TRY_TIMEOUT_S)
            assert readable
            assert process.stdout.readline().decode() == line
        yield
        process.stdin.close()
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def connections_of(load: Load, count: int) -> int:
    """The connections of a crowd of ``count``."""
    return count // PRODUCERS_PER_CONNECTION if load is Load.DESCRIBE else count


def _connect_all(url: str, count: int, receive_bytes: int | None) -> list[socket.socket]:
    """Connect ``count`` clients; those that the broker accepts."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY and most < count + SPARE_DESCRIPTORS:
        raise SystemExit(f"{count} clients need as many descriptors; ulimit -Hn is {most}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    host, port = url.removeprefix("pulsar://").split(":")
    peers = [_connecting(host, int(port), receive_bytes) for _ in range(count)]
    return [peer for peer in peers if _is_connected(peer)]


def _connecting(host: str, port: int, receive_bytes: int | None) -> socket.socket:
    peer = socket.socket()
    if receive_bytes is not None:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    peer.settimeout(CONNECT_TIMEOUT_S)
    peer.connect((host, port))
    with contextlib.suppress(OSError):  # the broker refuses connections beyond their share
        peer.sendall(frames.connect(client_version="rude"))
    return peer


def _is_connected(peer: socket.socket) -> bool:
    try:
        sizes = peer.recv(8, socket.MSG_WAITALL)
        answer = peer.recv(int.from_bytes(sizes[4:]), socket.MSG_WAITALL)
    except OSError:
        return False
    peer.setblocking(False)
    return bool(answer) and BaseCommand.FromString(answer).type == CommandType.CONNECTED


def _ping(peer: socket.socket, _: int) -> None:
    # What the socket does not take goes out next time: a torn frame would break the protocol.
    begin = _pinged.get(peer, 0)
    _pinged[peer] = (begin + peer.send(PINGS[begin:])) % len(PINGS)


def _describe(peer: socket.socket, number: int) -> None:
    with contextlib.suppress(BlockingIOError):
        while peer.recv(1 << 16):
            pass
    command = BaseCommand(type=CommandType.PRODUCER)
    request = command.producer
    request.request_id = request.producer_id = number
    request.topic = TOPIC
    request.producer_name = f"p{peer.getsockname()[1]}-{number}"
    request.metadata.add(key="description", value="d" * DESCRIPTION_BYTES)
    frame = encode_frame(command)
    peer.setblocking(True)
    try:
        peer.sendall(frame)
    finally:
        peer.setblocking(False)


def _half(peer: socket.socket, number: int) -> None:
    if number == 0:
        head = (2 * HALF_FRAME_BYTES).to_bytes(4) + (16).to_bytes(4)
        peer.send(head)
    peer.send(bytes(HALF_FRAME_BYTES // 16) if number < 16 else b"")


def _idle(peer: socket.socket, number: int) -> None:
    if number % SIGN_OF_LIFE_ROUNDS == 0:
        peer.send(frames.pong())
        peer.recv(1 << 16)


_ACTIONS: Final[dict[Load, Callable[[socket.socket, int], None]]] = {
    Load.PING: _ping,
    Load.DESCRIBE: _describe,
    Load.IDLE: _idle,
    Load.HALF: _half,
}


def _play(url: str, load: Load, count: int) -> None:
    os.nice(NICE)  # what it takes of the processors is not what is measured
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    receive_bytes = 4 * KIB if load is Load.PING else None
    peers = _connect_all(url, connections_of(load, count), receive_bytes)
    sys.stdout.write(f"{len(peers)} connected\n")
    sys.stdout.flush()
    act = _ACTIONS[load]
    rounds = PRODUCERS_PER_CONNECTION if load is Load.DESCRIBE else 1
    for number in itertools.count():
        if number == rounds:
            sys.stdout.write("ready\n")
            sys.stdout.flush()
        for peer in peers:
            with contextlib.suppress(OSError):  # full, or closed by the broker
                act(peer, number)
        wait_s = 0.0 if number < rounds else ROUND_S
        if select.select([sys.stdin], [], [], wait_s)[0]:
            break
    for peer in peers:
        peer.close()


if __name__ == "__main__":
    _play(sys.argv[1], Load(sys.argv[2]), int(sys.argv[3]))
