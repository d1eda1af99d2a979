"""What a delivery of a Shared subscription costs with many consumers, beside two of them.

Real sockets: each consumer has a connection of its own, acknowledges in groups as Pulsar's clients
do, and gives permits back by halves. The messages are in memory when the consumers begin. Both
sides take turns on one broker (ABBA), and the CPU is that of the whole broker.

    ./dev bench shared_consumers
    ./dev bench shared_consumers --consumers 1000 --pairs 3
"""

from __future__ import annotations

import argparse
import contextlib
import select
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.client import RECEIVE_BYTES, Client, Publisher, entry, publish
from bench.report import Table, median, number
from bench.servers import Server, headgate
from headgate.base.positions import Position
from headgate.wire import client
from headgate.wire.codes import CommandType, InitialPosition, SubscriptionType
from headgate.wire.frame import FrameDecoder
from headgate.wire.ids import position_of

MESSAGES = 40_000
PAYLOAD_BYTES = 100
FEW = 2
RATIO_MAX = 1.5
"""CPU a message with many consumers, by that with two."""
ACKED_TOGETHER = 100
"""Ids of one ACK."""
QUEUE = 1_000


class Worker(Client):
    """A consumer that acknowledges what it gets."""

    def __init__(self, port: int, topic: str) -> None:
        super().__init__(port)
        self.ask(
            client.subscribe(
                1, 0, topic, "s", kind=SubscriptionType.SHARED,
                initial_position=InitialPosition.EARLIEST,
            )
        )  # fmt: skip
        self._frames = FrameDecoder()
        self._unacked: list[Position] = []
        self._owed = 0

    def open(self) -> None:
        """Give the first permits."""
        self.socket.sendall(client.flow(0, QUEUE))

    def receive(self) -> int:
        """Take the messages that are there; return how many came."""
        data = self.socket.recv(RECEIVE_BYTES)
        if not data:
            raise RuntimeError("the server closed the connection")
        self._frames.feed(data)
        count, unacked = 0, self._unacked
        while (found := self._frames.next_frame()) is not None:
            if found[0].type == CommandType.MESSAGE:
                count += 1
                unacked.append(position_of(found[0].message.message_id))
        if len(unacked) >= ACKED_TOGETHER:
            self.acknowledge()
        self._owed += count
        if self._owed >= QUEUE // 2:
            self.socket.sendall(client.flow(0, self._owed))
            self._owed = 0
        return count

    def acknowledge(self) -> None:
        """Acknowledge what is not yet."""
        if self._unacked:
            self.socket.sendall(client.ack(0, self._unacked))
            self._unacked.clear()


def drain(workers: Sequence[Worker], messages: int) -> None:
    """Have the workers take so many messages together, and acknowledge all."""
    poll = select.poll()
    of_number = {worker.socket.fileno(): worker for worker in workers}
    for number_, worker in of_number.items():
        poll.register(number_, select.POLLIN)
        worker.open()
    while messages > 0:
        ready = poll.poll(10_000)
        if not ready:
            raise RuntimeError(f"{messages} messages did not come")
        messages -= sum(of_number[number_].receive() for number_, _ in ready)
    for worker in workers:
        worker.acknowledge()
        worker.ask(client.get_last_message_id(2, 0))


def round_us(server: Server, topic: str, consumers: int, messages: int) -> float:
    """The broker's CPU of a message that so many consumers share, in microseconds."""
    publisher = Publisher(server.port, topic, entry(PAYLOAD_BYTES))
    with contextlib.ExitStack() as stack:
        stack.callback(publisher.close)
        workers = [Worker(server.port, topic) for _ in range(consumers)]
        for worker in workers:
            stack.callback(worker.close)
        publish([publisher], messages)
        before_ns = server.cpu_ns()
        drain(workers, messages)
        return (server.cpu_ns() - before_ns) / messages / 1_000


def measure(consumers: int, messages: int, pairs: int) -> Table:
    """Both sides in turn."""
    few: list[float] = []
    many: list[float] = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        server = headgate(folder, ["managedLedgerCacheSizeMB=256"])
        try:
            for warm in range(2):
                round_us(server, f"warm{warm}", (FEW, consumers)[warm], messages)
            for pair in range(pairs):
                for side in (FEW, consumers) if pair % 2 == 0 else (consumers, FEW):
                    took = round_us(server, f"t{pair}-{side}", side, messages)
                    (few if side == FEW else many).append(took)
        finally:
            server.close()
    ratios = [b / a for a, b in zip(few, many, strict=True)]
    table = Table(f"CPU of a message of {PAYLOAD_BYTES} B, delivered and acknowledged, in pairs")
    table.add(f"{FEW} consumers", f"{number(median(few))} us")
    table.add(f"{consumers} consumers", f"{number(median(many))} us")
    note = f"{number(min(ratios))} to {number(max(ratios))}"
    table.check("the second by the first", median(ratios), "", RATIO_MAX, note=note)
    return table


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--consumers", type=int, default=100)
    parser.add_argument("--messages", type=int, default=MESSAGES)
    parser.add_argument("--pairs", type=int, default=6)
    arguments = parser.parse_args()
    measure(arguments.consumers, arguments.messages, arguments.pairs).print()


if __name__ == "__main__":
    main()
