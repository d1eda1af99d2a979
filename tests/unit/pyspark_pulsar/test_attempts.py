from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pulsar
import pytest

from pyspark_pulsar import attempts, range_reader
from pyspark_pulsar import client as client_module
from pyspark_pulsar.attempts import Attempt, AttemptEnd, read
from pyspark_pulsar.chunks import Chunk, EntryId, MissingRange, NoChunk
from pyspark_pulsar.errors import (
    AdminError,
    EncryptedError,
    MalformedEntryError,
    ReadTimeoutError,
    StalledReaderError,
)
from pyspark_pulsar.keys import KeyKind, MessageRef
from pyspark_pulsar.offsets import Position, earliest
from pyspark_pulsar.range_reader import Step
from tests.unit.pyspark_pulsar.fakes import (
    CONNECTION,
    SCHEMA,
    FakeMessage,
    FakeReader,
    T,
    entries,
    no_keys,
    settings,
    work,
)

CHUNK = Chunk("p-1", 0, 2)


class Stored:
    """The admin API, which knows these kinds of entries of ledger 3."""

    def __init__(self, *kinds: Chunk | NoChunk) -> None:
        self.kinds = kinds

    def entries(self, _topic: str, places: Iterable[EntryId]) -> dict[EntryId, Chunk | NoChunk]:
        if not self.kinds:
            raise AdminError("starting")
        return {place: self.kinds[place[1]] for place in places}

    def key_kinds(
        self, _topic: str, places: Iterable[MessageRef]
    ) -> Mapping[MessageRef, KeyKind | None]:
        return no_keys(list(places))


class Client:
    """Gives one reader."""

    def __init__(self, reader: FakeReader) -> None:
        self.reader = reader

    def create_reader(
        self,
        _topic: str,
        _first: pulsar.MessageId,
        *,
        receiver_queue_size: int,
        crypto_failure_action: pulsar.ConsumerCryptoFailureAction,
        reader_listener: Any = None,
    ) -> Any:
        assert crypto_failure_action == pulsar.ConsumerCryptoFailureAction.DISCARD
        assert (receiver_queue_size == 1) == (reader_listener is not None)
        return self.reader


def attempt_of(last_entry: int, **how: Any) -> Attempt:
    asked = work(earliest(T), Position(3, last_entry), (3, last_entry + 1))
    return Attempt(asked, settings(), SCHEMA, **({"begin": earliest(T)} | how))


def run(
    monkeypatch: pytest.MonkeyPatch, attempt: Attempt, stored: Stored, reader: FakeReader
) -> list[Step | AttemptEnd]:
    client = Client(reader)
    monkeypatch.setitem(client_module._clients, (os.getpid(), CONNECTION), client)  # type: ignore[arg-type]
    return list(read(attempt, stored))  # type: ignore[arg-type]


def test_a_stepwise_attempt_listens_and_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "STEPWISE_MESSAGES_MAX", 2)
    monkeypatch.setattr(attempts, "StepwiseReader", lambda opened: opened(lambda *_: None))
    attempt = attempt_of(3, is_stepwise=True)
    parts = run(monkeypatch, attempt, Stored(), FakeReader(list(entries(3, 0, 0, 0, 0))))
    assert [part.reached.entry_id for part in parts if isinstance(part, Step)] == [0, 1]
    assert parts[-1] == AttemptEnd((), is_complete=False)


@pytest.mark.parametrize(
    ("kinds", "raised"),
    [
        ([CHUNK, NoChunk.MALFORMED], MalformedEntryError),
        ([NoChunk.ENCRYPTED, CHUNK], EncryptedError),
        ([CHUNK, CHUNK], None),
        ([CHUNK, NoChunk.WHOLE], ReadTimeoutError),
        ([NoChunk.UNREADABLE, CHUNK], ReadTimeoutError),
        ([], ReadTimeoutError),
    ],
    ids=["malformed", "encrypted", "chunks", "whole", "unreadable", "restarting"],
)
def test_what_does_not_come_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
    kinds: list[Chunk | NoChunk],
    raised: type[Exception] | None,
) -> None:
    attempt = attempt_of(1)
    attempt = replace(attempt, settings=replace(attempt.settings, poll_timeout_ms=100))
    reader = FakeReader([], more=True)
    if raised is None:
        parts = run(monkeypatch, attempt, Stored(*kinds), reader)
        assert parts == [AttemptEnd((MissingRange(3, 0, 1),), is_complete=True)]
    else:
        with pytest.raises(raised):
            run(monkeypatch, attempt, Stored(*kinds), reader)


def test_behind_encrypted_entries_another_reader_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch of them takes all that the client would prefetch."""
    attempt = attempt_of(3)
    attempt = replace(attempt, settings=settings(fail=False))
    kinds = [CHUNK, NoChunk.ENCRYPTED, CHUNK, NoChunk.WHOLE]
    with pytest.raises(StalledReaderError) as caught:
        run(monkeypatch, attempt, Stored(*kinds), FakeReader([], more=True))
    assert (caught.value.ledger_id, caught.value.entry_id) == (3, 1)


@pytest.mark.parametrize(
    ("kinds", "arrived", "behind"),
    [
        ([NoChunk.WHOLE, CHUNK, NoChunk.WHOLE, NoChunk.WHOLE], [0, 3], 1),
        ([CHUNK, NoChunk.WHOLE, NoChunk.WHOLE, NoChunk.WHOLE], [1, 3], 1),
        ([NoChunk.WHOLE, NoChunk.WHOLE, CHUNK, NoChunk.WHOLE], [0, 1], 2),
        ([NoChunk.WHOLE, NoChunk.WHOLE, CHUNK, NoChunk.WHOLE], [3], None),
        ([NoChunk.GONE, CHUNK, NoChunk.ENCRYPTED, NoChunk.WHOLE], [3], None),
    ],
    ids=["at once", "later", "at the end", "before", "others"],
)
def test_behind_a_chunk_a_message_may_have_been_dropped(
    monkeypatch: pytest.MonkeyPatch,
    kinds: list[Chunk | NoChunk],
    arrived: list[int],
    behind: int | None,
) -> None:
    """Chunks take the memory of a listener. A reader that begins with the message has none."""
    monkeypatch.setattr(attempts, "StepwiseReader", lambda opened: opened(lambda *_: None))
    attempt = replace(attempt_of(3, is_stepwise=True), settings=settings(fail=False))
    sent = [message for entry in arrived for message in entries(3, 0, first=entry)]
    if behind is None:
        parts = run(monkeypatch, attempt, Stored(*kinds), FakeReader(list(sent)))
        assert [part.reached.entry_id for part in parts if isinstance(part, Step)] == arrived
    else:
        with pytest.raises(StalledReaderError) as caught:
            run(monkeypatch, attempt, Stored(*kinds), FakeReader(list(sent)))
        assert (caught.value.ledger_id, caught.value.entry_id) == (3, behind)


def test_a_client_that_began_before_a_chunk_awaits_its_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    attempt = attempt_of(0, awaits_chunks=True)
    attempt = replace(attempt, settings=replace(attempt.settings, poll_timeout_ms=100))
    with pytest.raises(ReadTimeoutError):
        run(monkeypatch, attempt, Stored(CHUNK), FakeReader([], more=True))


class Overrun(FakeMessage):
    """A message whose batch gives it another size than it has: its value is not the topic's."""

    def data(self) -> bytes:
        raise AssertionError("what the client would copy is other memory of its process")


@pytest.mark.parametrize("is_stepwise", [False, True])
@pytest.mark.parametrize("kind", [NoChunk.MALFORMED, NoChunk.UNREADABLE, NoChunk.GONE])
def test_batches_are_verified_before_their_values_are_taken(
    monkeypatch: pytest.MonkeyPatch, kind: NoChunk, is_stepwise: bool
) -> None:
    monkeypatch.setattr(attempts, "StepwiseReader", lambda opened: opened(lambda *_: None))
    attempt = attempt_of(3, is_stepwise=is_stepwise)
    attempt = replace(attempt, settings=replace(attempt.settings, verify_batches=True))
    wrong = [Overrun(Position(3, 2, -1, index), 2, None) for index in range(2)]
    reader = FakeReader([*entries(3, 0, 3), *wrong, *entries(3, 0, first=3)])
    parts: list[Step | AttemptEnd] = []
    stored = Stored(NoChunk.WHOLE, NoChunk.WHOLE, kind, NoChunk.WHOLE)
    client = Client(reader)
    monkeypatch.setitem(client_module._clients, (os.getpid(), CONNECTION), client)  # type: ignore[arg-type]
    with pytest.raises(MalformedEntryError) as caught:
        parts.extend(read(attempt, stored))  # type: ignore[arg-type]
    assert (caught.value.ledger_id, caught.value.entry_id) == (3, 2)
    batches = [part.batch for part in parts if isinstance(part, Step) and part.batch is not None]
    assert sum(batch.num_rows for batch in batches) == 4
    reached = [part.reached for part in parts if isinstance(part, Step)]
    assert reached[-1][:2] == (3, 1)


def test_a_verified_batch_is_asked_about_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[EntryId] = []

    class Counting(Stored):
        def entries(self, topic: str, places: Iterable[EntryId]) -> dict[EntryId, Chunk | NoChunk]:
            asked.extend(places := list(places))
            return super().entries(topic, places)

    monkeypatch.setattr(range_reader, "PORTION_BYTES_MAX", 2)
    attempt = attempt_of(2)
    attempt = replace(attempt, settings=replace(attempt.settings, verify_batches=True))
    stored = Counting(*[NoChunk.WHOLE] * 3)
    run(monkeypatch, attempt, stored, FakeReader(list(entries(3, 9, 0, 5))))
    assert asked == [(3, 0), (3, 2)], "an entry that is no batch has no sizes"
