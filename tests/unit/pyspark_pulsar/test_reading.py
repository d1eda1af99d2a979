from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import partial

import pulsar
import pyarrow as pa
import pytest

from pyspark_pulsar import attempts
from pyspark_pulsar import client as client_module
from pyspark_pulsar.chunks import Chunk, EntryId, NoChunk
from pyspark_pulsar.errors import DataLossError, EncryptedError
from pyspark_pulsar.keys import KeyKind, MessageRef
from pyspark_pulsar.offsets import Position, earliest
from pyspark_pulsar.ranges import DueEntries, LedgerSpan, ReadRange
from pyspark_pulsar.reading import read_range
from pyspark_pulsar.recovery import ReadAttempt
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
