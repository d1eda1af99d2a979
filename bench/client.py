"""The client that drives every server alike: plain sockets, frames made beforehand.

It must not be what limits the server, so it parses nothing that arrives while it measures: it
walks from frame to frame, looks at the type and counts.
"""

from __future__ import annotations

import select
import socket
import struct
import time
from collections.abc import Sequence

from headgate.base.positions import Position
from headgate.wire import client
from headgate.wire.batch import pack_batch
from headgate.wire.codes import CommandType, InitialPosition, SubscriptionType
from headgate.wire.entry import build_entry
from headgate.wire.frame import FrameDecoder
from headgate.wire.messages import BaseCommand, MessageMetadata

TIMEOUT_S = 30.0
PAYLOAD_BYTES = 1_024
BLOCK_FRAMES = 50
"""SENDs that are written at once."""
WINDOW = 1_000
"""SENDs without a receipt, as Pulsar's clients allow by default."""
RECEIVE_BYTES = 1 << 20
RECEIVER_QUEUE = 1_000
"""Permits of a consumer, as Pulsar's clients ask for; half of them come back at a time."""

_unpack_start = struct.Struct(">IIBB").unpack_from
_START_BYTES = 10
"""Both sizes, the tag of the command's type, and the type: every frame has them."""


def entry(payload_bytes: int = PAYLOAD_BYTES, batch: int = 0) -> bytes:
    """What a producer sends: one message, or a batch of ``batch`` messages of that size."""
    metadata = MessageMetadata(producer_name="bench", sequence_id=0, publish_time=1)
    payload = bytes(payload_bytes)
    if batch:
        metadata.num_messages_in_batch = batch
        payload = pack_batch([payload] * batch)
    return build_entry(metadata, payload)


class FrameCounter:
    """Counts the frames of one type in a stream, and refuses any other but PING."""

    def __init__(self, expected: CommandType) -> None:
        self._expected = int(expected)
        self._rest = b""
        self._skip = 0
        self._skipped = 0
        """1 if the frame whose rest is skipped is to be counted at its end."""
        self.pings = 0

    def take(self, data: bytes) -> int:
        """How many more whole frames there are after ``data``."""
        finished = 0
        if self._skip:
            if len(data) < self._skip:
                self._skip -= len(data)
                return 0
            finished = self._skipped
        if self._rest:
            data = self._rest + data
            self._rest = b""
        at, size, expected = self._skip, len(data), self._expected
        self._skip = counts = 0
        while size - at >= _START_BYTES:
            total, _, _, kind = _unpack_start(data, at)
            at += total + 4
            counts = int(kind == expected)
            if counts:
                finished += 1
            elif kind == CommandType.PING:
                self.pings += 1
            else:
                raise RuntimeError(f"{CommandType(kind).name} instead of {self._expected}")
        if at > size:
            self._skip = at - size
            self._skipped = counts
            finished -= counts
        else:
            self._rest = data[at:]
        return finished


class Client:
    """One connection, after its handshake."""

    def __init__(self, port: int) -> None:
        self.connect(port)
        self._decoder = FrameDecoder()
        self.ask(client.connect())

    def connect(self, port: int) -> None:
        """Open the socket."""
        self.socket = socket.create_connection(("127.0.0.1", port), TIMEOUT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, frame: bytes) -> BaseCommand:
        """Send a command and return what answers it."""
        self.socket.sendall(frame)
        while True:
            found = self._decoder.next_frame()
            if found is None:
                self._decoder.feed(self.socket.recv(65_536))
            elif found[0].type == CommandType.PING:
                self.socket.sendall(client.pong())
            elif found[0].type == CommandType.ERROR:
                raise RuntimeError(found[0].error.message)
            elif found[0].type != CommandType.ACTIVE_CONSUMER_CHANGE:
                return found[0]

    def close(self) -> None:
        """End the connection."""
        self.socket.close()


class Publisher(Client):
    """A producer that keeps its window full."""

    def __init__(self, port: int, topic: str, body: bytes, message_count: int = 1) -> None:
        super().__init__(port)
        self.ask(client.producer(1, 0, topic))
        counted = message_count if message_count > 1 else None
        self.frame = client.send(0, 1, body, message_count=counted)
        self._counter = FrameCounter(CommandType.SEND_RECEIPT)
        self.sent = self.received = 0

    def fill(self, total: int) -> None:
        """Send what the window allows, up to ``total`` in all."""
        while self.sent < total and self.sent - self.received + BLOCK_FRAMES <= WINDOW:
            self.socket.sendall(self.frame * min(BLOCK_FRAMES, total - self.sent))
            self.sent += min(BLOCK_FRAMES, total - self.sent)

    def receive(self) -> int:
        """Take the receipts that are there, waiting for some; return how many came."""
        data = self.socket.recv(RECEIVE_BYTES)
        if not data:
            raise RuntimeError("the server closed the connection")
        count = self._counter.take(data)
        self.received += count
        return count


def publish(publishers: Sequence[Publisher], each: int) -> float:
    """Have every publisher publish ``each`` entries; return the seconds that all took."""
    began_s = time.perf_counter()
    goals = {p.socket.fileno(): (p, p.received + each) for p in publishers}
    poll = select.poll()
    for number, (publisher, goal) in goals.items():
        poll.register(number, select.POLLIN)
        publisher.fill(goal)
    while goals:
        ready = poll.poll(TIMEOUT_S * 1_000)
        if not ready:
            raise RuntimeError("no receipt came")
        for number, _ in ready:
            publisher, goal = goals[number]
            publisher.receive()
            publisher.fill(goal)
            if publisher.received >= goal:
                poll.unregister(number)
                del goals[number]
    return time.perf_counter() - began_s


class Subscriber(Client):
    """A consumer, or with ``durable=False`` a reader, from the topic's first entry on."""

    def __init__(
        self, port: int, topic: str, name: str, kind: SubscriptionType, *, durable: bool = True
    ) -> None:
        super().__init__(port)
        asked = client.subscribe(
            1,
            0,
            topic,
            name,
            kind=kind,
            durable=durable,
            initial_position=InitialPosition.EARLIEST,
            start=None if durable else Position(-1, -1),
        )
        self.ask(asked)
        self._counter = FrameCounter(CommandType.MESSAGE)
        self._half = client.flow(0, RECEIVER_QUEUE // 2)
        self._owed = 0

    def open(self) -> None:
        """Give the first permits."""
        self.socket.sendall(client.flow(0, RECEIVER_QUEUE))

    def receive(self) -> int:
        """Take the messages that are there, give permits back; return how many came."""
        data = self.socket.recv(RECEIVE_BYTES)
        if not data:
            raise RuntimeError("the server closed the connection")
        count = self._counter.take(data)
        self._owed += count
        while self._owed >= RECEIVER_QUEUE // 2:
            self._owed -= RECEIVER_QUEUE // 2
            self.socket.sendall(self._half)
        return count

    def consume(self, count: int) -> float:
        """Take ``count`` messages; return the seconds that they took."""
        began_s = time.perf_counter()
        self.open()
        got = 0
        while got < count:
            got += self.receive()
        return time.perf_counter() - began_s
