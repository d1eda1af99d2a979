"""A topic in memory, read through the parts of pulsar-client that the source uses."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import pulsar
import pyarrow as pa

from pyspark_pulsar.client import ReadSettings
from pyspark_pulsar.columns import Message, Rows, arrow_schema, spark_schema
from pyspark_pulsar.keys import KeyDecoder, KeyKind, MessageRef
from pyspark_pulsar.offsets import Position
from pyspark_pulsar.options import Connection
from pyspark_pulsar.ranges import LedgerSpan, ReadRange, TopicSnapshot, due_entries
from pyspark_pulsar.resolve import require_topics

T = "persistent://public/default/t"
CONNECTION = Connection("pulsar://h:1", "http://h:2", 1_000, 1_000)
SCHEMA = arrow_schema(spark_schema(["value"]))


def settings(
    *, since_ms: int | None = None, until_ms: int | None = None, fail: bool = True
) -> ReadSettings:
    return ReadSettings(CONNECTION, since_ms, until_ms, fail, None, 5_000)


def work(start: Position, end: Position, *ledgers: tuple[int, int]) -> ReadRange:
    spans = tuple(LedgerSpan(ledger, count, count) for ledger, count in ledgers)
    return ReadRange(T, start, end, due_entries(TopicSnapshot(spans, None), start, end))


def rows_of(schema: pa.Schema) -> Rows:
    return Rows(schema, T, KeyDecoder(T, no_keys))


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


@dataclass(frozen=True)
class FakeId:
    position: Position
    batch_size: int

    def ledger_id(self) -> int:
        return self.position.ledger_id

    def entry_id(self) -> int:
        return self.position.entry_id

    def batch_index(self) -> int:
        return self.position.batch_index

    def __lt__(self, other: FakeId) -> bool:
        return self.position.order_key < other.position.order_key

    def serialize(self) -> bytes:
        """As the client does it: the fields ledgerId, entryId, batch_index and batch_size."""
        fields = [(1, self.position.ledger_id), (2, self.position.entry_id)]
        if self.batch_size:
            fields += [(4, self.position.batch_index), (6, self.batch_size)]
        return b"".join(_varint(number << 3) + _varint(value) for number, value in fields)


@dataclass(frozen=True)
class FakeMessage:
    position: Position
    batch_size: int = 0
    value: bytes | None = b""
    key: str = ""
    publish_ms: int = 0
    event_ms: int = 0
    props: dict[str, str] = field(default_factory=dict)
    producer: str = "p"

    def data(self) -> bytes:
        return self.value or b""

    def has_null_value(self) -> bool:
        return self.value is None

    def message_id(self) -> FakeId:
        return FakeId(self.position, self.batch_size)

    def partition_key(self) -> str:
        return self.key

    def producer_name(self) -> str:
        return self.producer

    def publish_timestamp(self) -> int:
        return self.publish_ms

    def event_timestamp(self) -> int:
        return self.event_ms

    def properties(self) -> dict[str, str]:
        return self.props


def no_keys(_: Collection[MessageRef]) -> dict[MessageRef, KeyKind | None]:
    """What an admin service says that shows no keys."""
    return {}


class FakeReader:
    """Gives a script: messages, or exceptions to raise; behind it nothing but timeouts."""

    def __init__(self, script: list[Message | Exception], *, more: bool = False) -> None:
        self.script = list(script)
        self.more = more
        self.reads = 0

    def read_next(self, timeout_millis: int) -> Message:
        assert 0 < timeout_millis <= 1_000
        self.reads += 1
        if not self.script:
            raise pulsar.Timeout("TimeOut")
        step = self.script.pop(0)
        if isinstance(step, Exception):
            raise step
        return step

    def has_message_available(self) -> bool:
        return bool(self.script) or self.more

    def close(self) -> None:
        self.script = []


def entries(ledger_id: int, *sizes: int, first: int = 0) -> list[FakeMessage]:
    """Messages of consecutive entries; size 0 is an unbatched entry. Values tell their place."""
    messages: list[FakeMessage] = []
    for entry_id, size in enumerate(sizes, first):
        for index in range(size) if size else [-1]:
            position = Position(ledger_id, entry_id, -1, index)
            value = f"{ledger_id}:{entry_id}:{index}".encode()
            messages.append(FakeMessage(position, size, value))
    return messages


class FakeAdmin:
    """The parts of the admin client that planning uses, over a dictionary of snapshots."""

    def __init__(self, held: dict[str, TopicSnapshot | None]) -> None:
        self.held = held
        self.rounds = 0

    def partitions_of(self, topics: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
        found = self.partitions_if_any(topics)
        require_topics(found)
        return found

    def partitions_if_any(self, topics: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
        return {
            topic: tuple(name for name in self.held if name.partition("-partition-")[0] == topic)
            for topic in topics
        }

    def snapshots(
        self, names: list[str], *, with_counts: bool = False
    ) -> dict[str, TopicSnapshot | None]:
        self.rounds += 1
        assert isinstance(with_counts, bool)
        return {name: self.held.get(name) for name in names}

    def positions_at(self, names: list[str], publish_ms: int) -> dict[str, Position]:
        return {name: Position(3, publish_ms // 1_000) for name in names}


def held(*ledgers: tuple[int, int]) -> TopicSnapshot:
    spans = tuple(LedgerSpan(ledger, entries, 100 * entries) for ledger, entries in ledgers)
    filled = [each for each in ledgers if each[1]]
    return TopicSnapshot(spans, (filled[-1][0], filled[-1][1] - 1) if filled else None)
