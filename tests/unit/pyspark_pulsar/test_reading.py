from __future__ import annotations

import dataclasses
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial
from random import Random

import pulsar
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from pyspark_pulsar import attempts, range_reader
from pyspark_pulsar import client as client_module
from pyspark_pulsar.chunks import Chunk, EntryId, NoChunk
from pyspark_pulsar.errors import (
    DataLossError,
    EncryptedError,
    PulsarSourceError,
    ReadTimeoutError,
)
from pyspark_pulsar.keys import KeyKind, MessageRef
from pyspark_pulsar.offsets import Position, earliest
from pyspark_pulsar.ranges import DueEntries, LedgerSpan, ReadRange, TopicSnapshot, due_entries
from pyspark_pulsar.reading import read_range
from pyspark_pulsar.recovery import ReadAttempt
from tests.unit.pyspark_pulsar import model
from tests.unit.pyspark_pulsar.fakes import (
    CONNECTION,
    SCHEMA,
    FakeReader,
    T,
    entries,
    no_keys,
    settings,
    work,
)


class FakeClient:
    """Stands for the process's client; remembers how readers were opened."""

    def __init__(self, fake: FakeReader) -> None:
        self.fake = fake
        self.opened: list[tuple[str, str, int]] = []

    def create_reader(
        self, topic: str, first: pulsar.MessageId, *, receiver_queue_size: int, **begin: object
    ) -> FakeReader:
        self.opened.append((topic, str(first), receiver_queue_size))
        return self.fake


class FakeStored:
    """The admin service of a topic without chunks: its ledgers, and entries that gave no message
    for another reason than being markers."""

    def __init__(
        self, held: frozenset[int], kinds: Mapping[EntryId, NoChunk] | None = None
    ) -> None:
        self.held = held
        self.kinds = kinds or {}

    def ledgers(self, _topic: str) -> tuple[LedgerSpan, ...]:
        return tuple(LedgerSpan(ledger, 2, 2) for ledger in sorted(self.held))

    def entries(self, _topic: str, places: Iterable[EntryId]) -> dict[EntryId, Chunk | NoChunk]:
        return {place: self.kinds.get(place, NoChunk.WHOLE) for place in places}

    def key_kinds(
        self, _topic: str, places: Iterable[MessageRef]
    ) -> dict[MessageRef, KeyKind | None]:
        return no_keys(list(places))


def within(stored: FakeStored) -> ReadAttempt:
    """Attempts to read in this process."""
    return partial(attempts.read, stored=stored)


def run_task(
    monkeypatch: pytest.MonkeyPatch,
    asked: ReadRange,
    held: frozenset[int],
    gone: Iterable[EntryId] = (),
    *,
    kind: NoChunk = NoChunk.GONE,
    fail: bool = True,
) -> tuple[list[pa.RecordBatch], FakeClient]:
    client = FakeClient(FakeReader(list(entries(3, 0, 0))))
    monkeypatch.setitem(client_module._clients, (os.getpid(), CONNECTION), client)
    stored = FakeStored(held, dict.fromkeys(gone, kind))
    return list(read_range(asked, settings(fail=fail), SCHEMA, stored, within(stored))), client


@pytest.mark.parametrize("encrypted", [[1, 2], [0], [2, 3]], ids=["middle", "begin", "end"])
def test_encrypted_entries_are_refused_or_left_out(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, encrypted: list[int]
) -> None:
    """The client drops them, and the others arrive."""
    plain = [
        message for message in entries(3, 0, 0, 0, 0) if message.position.entry_id not in encrypted
    ]
    stored = FakeStored(frozenset({3}), {(3, each): NoChunk.ENCRYPTED for each in encrypted})
    asked = work(earliest(T), Position(3, 3), (3, 4))

    def rows_read(*, fail: bool) -> int:
        client = FakeClient(FakeReader(list(plain)))
        monkeypatch.setitem(client_module._clients, (os.getpid(), CONNECTION), client)
        batches = read_range(asked, settings(fail=fail), SCHEMA, stored, within(stored))
        return sum(batch.num_rows for batch in batches)

    first = f"{T}: entry 3:{encrypted[0]} is encrypted, and this source has no keys"
    with pytest.raises(EncryptedError, match=f"{first}. Read a topic that is not encrypted"):
        rows_read(fail=True)
    assert rows_read(fail=False) == len(plain)
    told = f"{len(encrypted)} encrypted entries are left out, because failOnDataLoss is false"
    assert caplog.messages == [f"{first}; {told}"]


def test_a_topic_whose_messages_are_all_encrypted_is_refused_without_a_time_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """``has_message_available`` stays true, as nothing tells the client what it dropped."""
    client = FakeClient(FakeReader([], more=True))
    monkeypatch.setitem(client_module._clients, (os.getpid(), CONNECTION), client)
    stored = FakeStored(frozenset({3}), dict.fromkeys([(3, 0), (3, 1)], NoChunk.ENCRYPTED))
    asked = work(earliest(T), Position(3, 1), (3, 2))
    with pytest.raises(EncryptedError, match="entry 3:0 is encrypted"):
        list(read_range(asked, settings(), SCHEMA, stored, within(stored)))
    assert list(read_range(asked, settings(fail=False), SCHEMA, stored, within(stored))) == []


def test_entries_of_a_deleted_ledger_are_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = work(earliest(T), Position(4, 1), (3, 2), (4, 2))
    with pytest.raises(DataLossError, match=r"ledgers \[4\] were trimmed"):
        run_task(monkeypatch, asked, frozenset({3}))
    batches, _ = run_task(monkeypatch, asked, frozenset({3}), fail=False)
    assert sum(batch.num_rows for batch in batches) == 2


@pytest.mark.parametrize(
    ("gone", "told"),
    [
        ([(4, 0), (4, 1)], ["2 entries, the first 4:0,"]),
        ([(4, 0), (4, 1), (4, 2), (4, 3)], ["4 entries, the first 4:0,"]),
        ([(4, 2), (4, 3)], ["2 entries, the first 4:2,"]),
        ([(4, 0), (4, 3)], ["1 entries, the first 4:0,", "1 entries, the first 4:3,"]),
    ],
    ids=["begin", "all", "tail", "both"],
)
def test_missing_entries_of_a_retained_ledger_are_lost(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    gone: list[EntryId],
    told: list[str],
) -> None:
    asked = work(earliest(T), Position(4, 3), (3, 2), (4, 4))
    with pytest.raises(DataLossError, match=f"{told[0]} were trimmed before all of"):
        run_task(monkeypatch, asked, frozenset({3, 4}), gone)
    batches, _ = run_task(monkeypatch, asked, frozenset({3, 4}), gone, fail=False)
    assert sum(batch.num_rows for batch in batches) == 2
    assert [text.removeprefix(f"{T}: ").partition(" were")[0] for text in caplog.messages] == told


def test_entries_hidden_from_readers_are_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = work(earliest(T), Position(4, 1), (3, 2), (4, 2))
    batches, _ = run_task(monkeypatch, asked, frozenset({3, 4}))
    assert sum(batch.num_rows for batch in batches) == 2


def test_the_readers_queue_depends_on_the_entry_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    small = ReadRange(T, earliest(T), Position(3, 1), (DueEntries(3, 0, 1, 100.0),))
    large = ReadRange(T, Position(2, 7), Position(3, 1), (DueEntries(3, 0, 1, 1024.0 * 1024),))
    _, client = run_task(monkeypatch, small, frozenset())
    assert client.opened == [(T, str(pulsar.MessageId.earliest), 1_000)]
    _, client = run_task(monkeypatch, large, frozenset())
    assert client.opened == [(T, str(pulsar.MessageId(-1, 2, 8, -1)), 64)]


FIRST, SECOND = 2, 5
"""The ledgers of a model's topic."""


def modelled(chance: Random, *, odd: bool) -> tuple[model.Topic, TopicSnapshot, list[Position]]:
    """A topic, what it had when a query was planned, and where ranges end. Up to three
    producers send chunks, and may stop in the middle of a message; its begin may be trimmed."""
    counts = {FIRST: chance.randint(0, 7), SECOND: chance.randint(1, 7)}
    log: dict[EntryId, model.Entry] = {}
    going: dict[int, Chunk] = {}
    for place in [(ledger, entry) for ledger in counts for entry in range(counts[ledger])]:
        what = chance.random()
        if what < 0.4:
            log[place] = chance.choice([0, 0, 1, 2, 3])
        elif what < (0.65 if odd else 0.5):
            log[place] = chance.choice(list(model.Odd)) if odd else model.Odd.MARKER
        else:
            who = chance.randint(0, 2)
            last = going.get(who)
            if last is None or last.is_last:
                going[who] = Chunk(f"{who}-{place}", 0, chance.randint(2, 4))
            else:
                going[who] = Chunk(last.uuid, last.index + 1, last.count)
            log[place] = going[who]
    if model.Odd.MARKER in log.values():  # which may be messages as far as a task can tell
        log[SECOND, counts[SECOND] - 1] = 0
    cuts = {Position(*place) for place in log if not chance.randint(0, 3)}
    cuts |= {
        message.position
        for place, entry in log.items()
        if isinstance(entry, int) and entry > 1 and not chance.randint(0, 3)
        for message in [model.message_of(place, chance.randrange(entry - 1), entry)]
    }
    for place in list(log)[: max(0, chance.randint(-8, len(log) - 1)) if odd else 0]:
        del log[place]
    spans = tuple(
        LedgerSpan(ledger, count, count)
        for ledger, count in counts.items()
        if count and (ledger == SECOND or any(place[0] == ledger for place in log))
    )
    ends = sorted(cuts, key=lambda each: each.order_key)
    topic = model.Topic(log, spans, draw=lambda most: chance.randint(0, most))
    last = Position(SECOND, counts[SECOND] - 1)
    planned = TopicSnapshot(tuple(LedgerSpan(*each, 9) for each in counts.items() if each[1]), None)
    return topic, planned, [*(each for each in ends if each.order_key < last.order_key), last]


def read_modelled(
    topic: model.Topic, ends: list[Position], planned: TopicSnapshot, *, fail: bool, since_ms: int
) -> list[bytes]:
    """The rows of all ranges."""
    start, values = Position(-1, -1), list[bytes]()
    how = dataclasses.replace(settings(since_ms=since_ms, fail=fail), poll_timeout_ms=20)
    for end in ends:
        due = due_entries(planned, start, end)
        if due:
            work = ReadRange(T, start, end, due)
            for batch in read_range(work, how, SCHEMA, topic, topic.read):
                values += batch[0].to_pylist()
        start = end
    return values


@pytest.mark.parametrize("odd", [False, True], ids=["honest", "hostile"])
@hypothesis_settings(
    max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(seed=st.integers(0, (1 << 32) - 1))
def test_each_message_comes_once_or_is_reported(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, odd: bool, seed: int
) -> None:
    """Whatever is stored, wherever ranges are cut, and whenever the process ends."""
    chance = Random(seed)
    caplog.clear()
    topic, planned, ends = modelled(chance, odd=odd)
    topic.kills, topic.faults = chance.randint(0, 3), chance.randint(0, 1)
    since_ms, fail = chance.choice([0, 0, 3]), chance.random() < 0.3
    monkeypatch.setitem(client_module._clients, (os.getpid(), CONNECTION), topic)  # type: ignore[arg-type]
    monkeypatch.setattr(attempts, "StepwiseReader", lambda opened: opened(lambda *_: None))
    monkeypatch.setattr(attempts, "STEPWISE_MESSAGES_MAX", chance.randint(1, 20))
    monkeypatch.setattr(range_reader, "BATCH_ROWS_MAX", chance.randint(1, 6))
    monkeypatch.setattr(range_reader, "BATCH_BYTES_MAX", chance.randint(1, 40))
    monkeypatch.setattr(range_reader, "PORTION_MESSAGES_MAX", chance.randint(1, 6))
    monkeypatch.setattr(range_reader, "STEP_MESSAGES_MAX", chance.randint(1, 10))
    values: list[bytes] = []
    failure: PulsarSourceError | None = None
    try:
        values = read_modelled(topic, ends, planned, fail=fail, since_ms=since_ms)
    except PulsarSourceError as error:
        failure = error
    if failure is not None:
        assert odd or topic.dropped
        assert fail or isinstance(failure, ReadTimeoutError)
        return
    wanted = [each.data() for each in topic.honest() if each.publish_ms >= since_ms]
    told = " ".join(caplog.messages)
    assert Counter(values) <= Counter(wanted)
    for value in Counter(wanted) - Counter(values):
        assert odd or topic.dropped
        assert not fail
        assert value.decode().rpartition(":")[0] in told
