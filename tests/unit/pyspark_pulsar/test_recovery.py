from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pulsar
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_pulsar import recovery
from pyspark_pulsar.attempts import Attempt, AttemptEnd
from pyspark_pulsar.chunks import MissingRange, entry_ids
from pyspark_pulsar.columns import Message
from pyspark_pulsar.errors import (
    DataLossError,
    MalformedEntryError,
    PulsarSourceError,
    ReaderProcessError,
    StalledReaderError,
)
from pyspark_pulsar.offsets import Position, earliest
from pyspark_pulsar.range_reader import RangeReader, Step
from pyspark_pulsar.recovery import RecoveringReader
from tests.unit.pyspark_pulsar.fakes import (
    SCHEMA,
    FakeMessage,
    FakeReader,
    T,
    entries,
    rows_of,
    settings,
    work,
)

HIDDEN, FATAL, STALLING, SEALED = "hidden", "fatal", "stalling", "sealed"
"""Entries from which no reader receives a message: such as a marker; one that ends the client's
process; one behind which the broker sends nothing; an encrypted one of that effect."""

FAULT = ReaderProcessError("with signal SIGSEGV", is_by_client=True)
KILLED = ReaderProcessError("with signal SIGKILL", is_by_client=False)


class Client(FakeReader):
    """Fails when it receives an entry that is fatal."""

    def __init__(self, script: list[Message | Exception], *, is_stalled: bool) -> None:
        super().__init__(script)
        self.is_stalled = is_stalled

    def has_message_available(self) -> bool:
        return bool(self.script) or self.is_stalled


@dataclass
class Topic:
    """One ledger of entries, and the process that reads it. A number counts an entry's messages, 0
    is a message that is no batch."""

    kinds: list[int | str]
    prefetched: Callable[[], int] = lambda: 0
    """How many entries the client of an ordinary attempt has that it has not handed on."""
    attempts: list[Attempt] = field(default_factory=list)

    def messages(self) -> list[FakeMessage]:
        """What there is to read."""
        return [
            message
            for entry, kind in enumerate(self.kinds)
            if isinstance(kind, int)
            for message in entries(3, kind, first=entry)
        ]

    def first_sent(self, attempt: Attempt) -> int:
        """The first entry that a broker sends."""
        begin = attempt.begin
        if begin.ledger_id < 0:
            return 0
        return begin.entry_id + (begin.batch_index < 0)

    def read(self, attempt: Attempt) -> Iterator[Step | AttemptEnd]:
        self.attempts.append(attempt)
        first = self.first_sent(attempt)
        script: list[Message | Exception] = []
        is_stalled = False
        for entry, kind in enumerate(self.kinds[first:], first):
            if kind == FATAL:
                ahead = 0 if attempt.is_stepwise else self.prefetched()
                script = [m for m in script if m.message_id().entry_id() < entry - ahead]  # type: ignore[union-attr]
                script.append(FAULT)
                break
            if kind in (STALLING, SEALED):
                is_stalled = True
                break
            if isinstance(kind, int):
                script += entries(3, kind, first=entry)

        def will_not_come(missing: list[MissingRange]) -> bool:
            for _, entry in entry_ids(missing):
                if self.kinds[entry] == STALLING:
                    raise MalformedEntryError(3, entry)
                if self.kinds[entry] == SEALED:
                    raise StalledReaderError(3, entry)
                if self.kinds[entry] != HIDDEN:
                    return False
            return True

        reading = RangeReader(
            Client(script, is_stalled=is_stalled),
            attempt.work,
            attempt.settings,
            will_not_come=will_not_come,  # type: ignore[arg-type]
            messages_max=3 if attempt.is_stepwise else None,
            monotonic=iter(range(10_000)).__next__,
        )
        yield from reading.steps(rows_of(SCHEMA))
        yield AttemptEnd(tuple(reading.missing_ranges()), not reading.is_stopped)


def recovered(topic: Topic, *, fail: bool = False) -> tuple[list[bytes], RecoveringReader]:
    start, end = earliest(T), Position(3, len(topic.kinds) - 1)
    attempt = Attempt(
        work(start, end, (3, len(topic.kinds))), settings(fail=fail), SCHEMA, begin=start
    )
    reading = RecoveringReader(attempt, topic.read)
    return [value for batch in reading.batches() for value in batch[0].to_pylist()], reading


@given(
    st.lists(
        st.sampled_from([0, 0, 1, 2, 3, HIDDEN, FATAL, STALLING, SEALED]), min_size=1, max_size=12
    ),
    st.data(),
)
def test_all_other_messages_are_read_once_and_in_order(
    kinds: list[int | str], data: st.DataObject
) -> None:
    topic = Topic(kinds, prefetched=lambda: data.draw(st.integers(0, 4)))
    values, reading = recovered(topic)
    assert values == [message.data() for message in topic.messages()]
    without = {place[1] for place in entry_ids(reading.missing_ranges())}
    # A hidden entry before a fatal one may be taken for it. No entry is forgotten.
    hidden = {entry for entry, kind in enumerate(kinds) if kind in (HIDDEN, SEALED)}
    assert without <= hidden
    if FATAL not in kinds and STALLING not in kinds:
        assert len(topic.attempts) <= 1 + kinds.count(SEALED)
        assert without == hidden


def test_a_malformed_entry_is_a_loss(caplog: pytest.LogCaptureFixture) -> None:
    sentence = (
        f"{T}: entry 3:2 is malformed or needs more memory than readerMemoryMb: the process that "
        "reads from the broker ended with signal SIGSEGV"
    )
    with pytest.raises(DataLossError, match=sentence):
        recovered(Topic([0, 0, FATAL, 0]), fail=True)
    topic = Topic([0, 0, FATAL, 0])
    values, _ = recovered(topic)
    assert values == [b"3:0:-1", b"3:1:-1", b"3:3:-1"]
    assert caplog.messages == [f"{sentence}; the query continues, because failOnDataLoss is false"]
    # Ordinary, stepwise to the entry, once more at it, and behind it.
    assert [each.is_stepwise for each in topic.attempts] == [False, True, True, True]
    assert [str(each.begin) for each in topic.attempts[1:]] == [
        "-1:-1:-1:-1", "3:1:-1:-1", "3:2:-1:-1"]  # fmt: skip


def test_a_stalling_entry_is_a_loss(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(DataLossError, match="entry 3:1 is malformed and keeps others from"):
        recovered(Topic([0, STALLING, 0]), fail=True)
    assert recovered(Topic([0, STALLING, 0]))[0] == [b"3:0:-1", b"3:2:-1"]
    assert len(caplog.messages) == 1


def test_behind_so_many_messages_an_attempt_is_ordinary_again() -> None:
    topic = Topic([0, FATAL, *[0] * 8])
    assert len(recovered(topic)[0]) == 9
    assert [each.is_stepwise for each in topic.attempts[-2:]] == [True, False]


def test_very_many_malformed_entries_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery, "MALFORMED_ENTRIES_MAX", 2)
    assert len(recovered(Topic([0, FATAL, STALLING, 0]))[0]) == 2
    with pytest.raises(PulsarSourceError, match=r"entry 3:3 is malformed.* So are 2 before it"):
        recovered(Topic([0, FATAL, STALLING, FATAL, 0]))


def test_a_process_that_something_else_ended_says_nothing_about_an_entry(
    caplog: pytest.LogCaptureFixture,
) -> None:
    topic = Topic([0, 0])
    endings = [KILLED] * 3

    def read(attempt: Attempt) -> Iterator[Step | AttemptEnd]:
        if endings:
            raise endings.pop()
        yield from topic.read(attempt)

    start = earliest(T)
    attempt = Attempt(work(start, Position(3, 1), (3, 2)), settings(), SCHEMA, begin=start)
    assert sum(batch.num_rows for batch in RecoveringReader(attempt, read).batches()) == 2
    assert not topic.attempts[0].is_stepwise
    endings = [KILLED] * 4
    with pytest.raises(ReaderProcessError, match="ended with signal SIGKILL"):
        list(RecoveringReader(attempt, read).batches())
    assert caplog.messages == []


def test_the_errors_of_an_attempt_end_the_range() -> None:
    def read(_: Attempt) -> Iterator[Step | AttemptEnd]:
        raise pulsar.TopicNotFound("gone")

    attempt = Attempt(
        work(earliest(T), Position(3, 1), (3, 2)), settings(fail=False), SCHEMA, begin=earliest(T)
    )
    with pytest.raises(pulsar.TopicNotFound):
        list(RecoveringReader(attempt, read).batches())
