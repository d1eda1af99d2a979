"""A topic in memory, as a broker sends its entries."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from headgate.wire.codes import CompressionType
from headgate.wire.entry import build_entry
from headgate.wire.messages import MessageMetadata, SingleMessageMetadata
from pyspark_pulsar.columns import Rows, arrow_schema, spark_schema
from pyspark_pulsar.commands import StoredEntry
from pyspark_pulsar.entries import EntryId
from pyspark_pulsar.missing import Fate
from pyspark_pulsar.offsets import WHOLE_ENTRY, Position
from pyspark_pulsar.options import Connection
from pyspark_pulsar.ranges import LedgerSpan, ReadRange, TopicSnapshot, due_entries
from pyspark_pulsar.read_settings import ReadSettings
from pyspark_pulsar.resolve import require_topics

T = "persistent://public/default/t"
CONNECTION = Connection("pulsar://h:1", "http://h:2", 1_000, 1_000)
SCHEMA = arrow_schema(spark_schema(["value"]))


def settings(
    *,
    since_ms: int | None = None,
    until_ms: int | None = None,
    fail: bool = True,
    poll_ms: int = 5_000,
) -> ReadSettings:
    return ReadSettings(CONNECTION, since_ms, until_ms, fail, None, poll_ms)


def work(start: Position, end: Position, *ledgers: tuple[int, int]) -> ReadRange:
    spans = tuple(LedgerSpan(ledger, count, count) for ledger, count in ledgers)
    return ReadRange(T, start, end, due_entries(TopicSnapshot(spans, None), start, end))


def rows_of(schema: pa.Schema) -> Rows:
    return Rows(schema, T)


def body(payload: bytes, publish_ms: int = 1, **fields: object) -> bytes:
    """An entry with this payload and these fields of its metadata."""
    made = MessageMetadata(producer_name="p", sequence_id=1, publish_time=publish_ms, **fields)  # type: ignore[arg-type]
    return build_entry(made, payload)


def batch(values: Sequence[bytes], publish_ms: int = 1, **fields: object) -> bytes:
    """A batch, compressed by zlib."""
    parts = []
    for value in values:
        head = SingleMessageMetadata(payload_size=len(value)).SerializeToString()
        parts.append(len(head).to_bytes(4) + head + value)
    payload = b"".join(parts)
    return body(
        zlib.compress(payload),
        publish_ms,
        num_messages_in_batch=len(values),
        compression=CompressionType.ZLIB,
        uncompressed_size=len(payload),
        **fields,
    )


def chunk(uuid: str, index: int, parts: Sequence[bytes], publish_ms: int = 1) -> bytes:
    """The chunk ``index`` of a message."""
    return body(
        parts[index],
        publish_ms,
        uuid=uuid,
        chunk_id=index,
        num_chunks_from_msg=len(parts),
        total_chunk_msg_size=sum(map(len, parts)),
    )


BEGIN = Position(-1, -1)
ENCRYPTED = body(b"?", encryption_keys=[{"key": "team", "value": b"?"}])
MALFORMED = body(b"x" * 20, num_messages_in_batch=2)


def entries(ledger_id: int, *sizes: int, first: int = 0) -> dict[EntryId, bytes]:
    """Consecutive entries; size 0 is a message outside a batch. Values tell their place."""
    made: dict[EntryId, bytes] = {}
    for entry_id, size in enumerate(sizes, first):
        values = [b"%d:%d:%d" % (ledger_id, entry_id, each) for each in range(size)]
        made[ledger_id, entry_id] = (
            batch(values) if size else body(b"%d:%d:-1" % (ledger_id, entry_id))
        )
    return made


@dataclass
class FakeStream:
    """Gives the entries of a topic behind a position; behind them nothing comes."""

    stored: Mapping[EntryId, bytes]
    begin: Position = BEGIN
    more: bool = False
    """Whether the broker says that more follows."""
    silent: int = 0
    """How often nothing comes in time before the first entry."""
    permits: int = 0
    """What the entries that were taken counted as."""
    given: list[EntryId] = field(default_factory=list)
    moved: tuple[EntryId, EntryId] | None = None
    """Once the first one was given, this reader gets nothing up to the second one."""
    is_closed: bool = False
    now_s: float = 0.0
    last_failure: str = ""

    def __post_init__(self) -> None:
        behind = self.begin[:2]
        if self.begin.batch_index != WHOLE_ENTRY:
            behind = behind[0], behind[1] - 1
        self._rest = sorted(place for place in self.stored if place > behind)

    def next_entry(self, timeout_s: float) -> StoredEntry | None:
        assert 0 <= timeout_s <= 20
        assert not self.is_closed
        if self.silent or not self._rest:
            self.silent = max(0, self.silent - 1)
            self.now_s += timeout_s
            return None
        place = self._rest.pop(0)
        self.given.append(place)
        if self.moved is not None and place == self.moved[0]:
            self._rest = [each for each in self._rest if each > self.moved[1]]
        return StoredEntry(*place, self.stored[place])

    def taken(self, messages: int) -> None:
        assert messages > 0
        self.permits += messages

    def has_more(self) -> bool:
        return self.more or bool(self._rest)

    def again(self, last: EntryId) -> None:
        self.moved = None
        self._rest = sorted(place for place in self.stored if place > last)

    def close(self) -> None:
        self.is_closed = True


@dataclass
class FakeStored:
    """The admin API of a topic, which no longer holds some entries."""

    spans: tuple[LedgerSpan, ...]
    lost: Callable[[EntryId], bool] = lambda _: False
    unsent: frozenset[EntryId] = frozenset()
    """Markers, and messages of aborted transactions."""
    asked: list[EntryId] = field(default_factory=list)

    def ledgers(self, _topic: str) -> tuple[LedgerSpan, ...]:
        return self.spans

    def fates(self, _topic: str, places: Iterable[EntryId]) -> dict[EntryId, Fate]:
        found = {place: self._fate(place) for place in places}
        self.asked += found
        return found

    def _fate(self, place: EntryId) -> Fate:
        if self.lost(place):
            return Fate.GONE
        return Fate.UNSENT if place in self.unsent else Fate.PASSED_OVER

    def is_unsent(self, _topic: str, place: EntryId) -> bool:
        self.asked.append(place)
        return place in self.unsent


def opened(
    stored: Mapping[EntryId, bytes], made: list[FakeStream] | None = None, **how: object
) -> Callable[[str, Position, ReadSettings], FakeStream]:
    """What opens streams over these entries; they are added to ``made``."""

    def open_stream(topic: str, begin: Position, _settings: ReadSettings) -> FakeStream:
        assert topic == T
        stream = FakeStream(stored, begin, **how)  # type: ignore[arg-type]
        if made is not None:
            made.append(stream)
        return stream

    return open_stream


def values(batches: Iterator[pa.RecordBatch]) -> list[bytes]:
    """The first column of all batches."""
    return [value for each in batches for value in each[0].to_pylist()]


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
