"""A broker of Pulsar's protocol in memory, with a clock that only waits move."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from headgate.base.positions import Position as Place
from headgate.wire import encode, replies
from headgate.wire.codes import CommandType
from headgate.wire.messages import BaseCommand
from pyspark_pulsar.broker_connection import Address
from pyspark_pulsar.commands import StoredEntry

HERE = Address("b", 6_650)
CONNECTED = replies.connected(protocol_version=19, message_bytes_max=1, server_version="x")


@dataclass
class Clock:
    """Passes by sleeping and waiting alone."""

    now_s: float = 0.0

    def __call__(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        assert seconds >= 0
        self.now_s += seconds


def message_frame(entry: StoredEntry) -> bytes:
    """The frame of a MESSAGE."""
    head = encode.message_frame_head(
        0, entry.ledger_id, entry.entry_id, -1, 0, (), -1, len(entry.body)
    )
    return head + entry.body


def entries(*counts: int, ledger_id: int = 7) -> list[StoredEntry]:
    """So many entries in each of some ledgers."""
    return [
        StoredEntry(ledger_id + 100 * number, entry_id, b"%d-%d" % (number, entry_id))
        for number, count in enumerate(counts)
        for entry_id in range(count)
    ]


Answer = Callable[["FakePeer", BaseCommand], Iterable[bytes]]


@dataclass
class FakeBroker:
    """Answers as a broker does, unless ``answers`` has another answer to a type of command."""

    stored: Sequence[StoredEntry] = ()
    clock: Clock = field(default_factory=Clock)
    counted: int = 1
    """How many permits an entry takes."""
    answers: dict[CommandType, Answer] = field(default_factory=dict)
    peers: list[FakePeer] = field(default_factory=list)
    unreachable: set[Address] = field(default_factory=set)
    bytes_per_receive: int = 1 << 20

    def dial(self, address: Address, timeout_s: float) -> FakePeer:
        assert timeout_s > 0
        if address in self.unreachable:
            raise ConnectionRefusedError("refused")
        self.peers.append(FakePeer(self, address))
        return self.peers[-1]

    def add(self, entry: StoredEntry) -> None:
        """Store an entry and send it to the last peer."""
        self.stored = [*self.stored, entry]
        self.peers[-1].deliver()

    def answer(self, peer: FakePeer, command: BaseCommand) -> Iterable[bytes]:
        kind = CommandType(command.type)
        if kind in self.answers:
            return self.answers[kind](peer, command)
        if kind == CommandType.CONNECT:
            return [CONNECTED]
        if kind == CommandType.LOOKUP:
            number = command.lookupTopic.request_id
            return [replies.lookup_connect(number, broker_url=f"pulsar://{peer.address}")]
        if kind == CommandType.SUBSCRIBE:
            start = command.subscribe.start_message_id
            peer.begin(_signed(start.ledgerId), _signed(start.entryId))
            return [
                replies.success(command.subscribe.request_id),
                replies.active_consumer_change(0, is_active=True),
            ]
        if kind == CommandType.GET_LAST_MESSAGE_ID:
            last = self.stored[-1] if self.stored else StoredEntry(-1, -1, b"")
            number = command.getLastMessageId.request_id
            return [replies.last_message_id(number, Place(last.ledger_id, last.entry_id))]
        if kind == CommandType.FLOW:
            peer.permits += command.flow.messagePermits
            peer.deliver()
        return []


class FakePeer:
    """One connection to the broker, and what it was sent."""

    def __init__(self, broker: FakeBroker, address: Address) -> None:
        self.broker, self.address = broker, address
        self.sent: list[BaseCommand] = []
        self.permits = 0
        self.inbox = bytearray()
        self.ended = self.closed = self.breaks = False
        self.events: list[tuple[float, Callable[[FakePeer], None]]] = []
        self._next = len(broker.stored)
        self._timeout_s = 0.0

    def begin(self, ledger_id: int, entry_id: int) -> None:
        stored = self.broker.stored
        self._next = sum(each[:2] < (ledger_id, entry_id) for each in stored)

    def deliver(self) -> None:
        while self.permits > 0 and self._next < len(self.broker.stored):
            self.inbox += message_frame(self.broker.stored[self._next])
            self._next += 1
            self.permits -= self.broker.counted

    def after(self, seconds: float, event: Callable[[FakePeer], None]) -> None:
        """Let something happen while the client waits."""
        self.events.append((self.broker.clock() + seconds, event))

    def types(self) -> list[CommandType]:
        """The types of what was sent."""
        return [CommandType(each.type) for each in self.sent]

    def settimeout(self, value: float | None) -> None:
        assert value is not None
        assert value > 0
        self._timeout_s = value

    def recv_into(self, buffer: memoryview) -> int:
        assert not self.closed
        clock = self.broker.clock
        if not self.inbox and not self.ended:
            end_s = clock() + self._timeout_s
            due = sorted(each for each in self.events if each[0] <= end_s)
            if not due:
                clock.now_s = end_s
                raise TimeoutError("timed out")
            clock.now_s = max(clock.now_s, due[0][0])
            self.events.remove(due[0])
            due[0][1](self)
            if not self.inbox and not self.ended:
                raise TimeoutError("timed out")
        count = min(len(buffer), len(self.inbox), self.broker.bytes_per_receive)
        buffer[:count] = self.inbox[:count]
        del self.inbox[:count]
        return count

    def sendall(self, data: bytes) -> None:
        assert not self.closed
        if self.breaks or self.ended:
            raise BrokenPipeError("broken pipe")
        while data:
            total, size = int.from_bytes(data[:4], "big"), int.from_bytes(data[4:8], "big")
            assert total == size + 4
            command = BaseCommand.FromString(data[8 : 8 + size])
            data = data[8 + size :]
            self.sent.append(command)
            for frame in self.broker.answer(self, command):
                self.inbox += frame

    def close(self) -> None:
        self.closed = True
        if self.breaks:
            raise OSError("close failed")


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value
