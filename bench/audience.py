"""Many producers or many consumers on one connection, for benches with thousands of either."""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Sequence

from bench.client import RECEIVE_BYTES, TIMEOUT_S, Client, FrameCounter
from headgate.base.positions import Position
from headgate.wire import client
from headgate.wire.codes import CommandType, InitialPosition, SubscriptionType
from headgate.wire.frame import FrameDecoder

PIPELINE_REQUESTS = 100
"""Requests that are sent before the first of them is answered."""
POLL_MS = 2


def ask_all(connection: Client, requests: Sequence[bytes]) -> None:
    """Send requests, many at a time, and wait until each is answered.

    Raises:
        RuntimeError: one was refused.
    """
    for start in range(0, len(requests), PIPELINE_REQUESTS):
        asked = requests[start : start + PIPELINE_REQUESTS]
        connection.ask(b"".join(asked))
        for _ in asked[1:]:
            connection.ask(b"")


def hold(port: int, topics: Sequence[str]) -> None:
    """Make topics that keep what is published: each with a stored subscription of nobody."""
    connection = Client(port)
    subscribe = client.subscribe
    ask_all(
        connection,
        [
            subscribe(number, number, topic, "holds", initial_position=InitialPosition.EARLIEST)
            for number, topic in enumerate(topics)
        ],
    )
    connection.close()


class Feeder(Client):
    """One producer on each of many topics."""

    def __init__(self, port: int, topics: Sequence[str], body: bytes, messages: int = 1) -> None:
        """Send entries ``body`` that hold so many messages."""
        super().__init__(port)
        ask_all(self, [client.producer(n, n, topic) for n, topic in enumerate(topics)])
        counted = messages if messages > 1 else None
        self._frames = [
            client.send(number, 1, body, message_count=counted) for number in range(len(topics))
        ]
        self._receipts = FrameCounter(CommandType.SEND_RECEIPT)

    def publish_everywhere(self, entries: int) -> None:
        """Publish so many entries on each topic and wait until all are durable."""
        for _ in range(entries):
            self.socket.sendall(b"".join(self._frames))
            self.receive(len(self._frames))

    def send(self, number: int) -> None:
        """Publish one entry on one topic, without waiting."""
        self.socket.sendall(self._frames[number])

    def receive(self, count: int) -> None:
        """Wait for so many receipts."""
        while count > 0:
            count -= self._receipts.take(self.socket.recv(RECEIVE_BYTES))


class Audience(Client):
    """A reader from the first entry on of each of many topics, or many of one."""

    def __init__(self, port: int, topics: Sequence[str]) -> None:
        super().__init__(port)
        requests = [
            client.subscribe(
                number,
                number,
                topic,
                f"reader-{id(self)}-{number}",
                kind=SubscriptionType.EXCLUSIVE,
                durable=False,
                start=Position(-1, -1),
            )
            for number, topic in enumerate(topics)
        ]
        ask_all(self, requests)
        self.entries = [0] * len(topics)
        """Received by each reader."""
        self._frames = FrameDecoder()

    def open(self, permits: int) -> None:
        """Let everybody have so many messages."""
        self.socket.sendall(b"".join(client.flow(n, permits) for n in range(len(self.entries))))

    def receive(self) -> None:
        """Take what is there."""
        data = self.socket.recv(RECEIVE_BYTES)
        if not data:
            raise RuntimeError("the server closed the connection")
        self._frames.feed(data)
        entries = self.entries
        while (found := self._frames.next_frame()) is not None:
            command = found[0]
            if command.type == CommandType.MESSAGE:
                entries[command.message.consumer_id] += 1
            elif command.type == CommandType.PING:
                self.socket.sendall(client.pong())


def listen(
    audiences: Sequence[Audience], seconds: float, also: Callable[[float], None] | None = None
) -> None:
    """Receive for so long; call ``also`` with the seconds gone by, every few milliseconds."""
    poll = select.poll()
    of_number = {audience.socket.fileno(): audience for audience in audiences}
    for number in of_number:
        poll.register(number, select.POLLIN)
    began_s = time.perf_counter()
    while (gone_s := time.perf_counter() - began_s) < seconds:
        if also is not None:
            also(gone_s)
        for number, _ in poll.poll(POLL_MS):
            of_number[number].receive()


def wait_for(audiences: Sequence[Audience], entries: int) -> None:
    """Receive until every reader has so many entries.

    Raises:
        RuntimeError: they did not come.
    """
    end_s = time.perf_counter() + TIMEOUT_S
    while any(min(audience.entries) < entries for audience in audiences):
        if time.perf_counter() > end_s:
            raise RuntimeError(f"some reader has not got {entries} entries")
        listen(audiences, 0.05)
