from __future__ import annotations

import os
import pickle
from collections.abc import Iterator

import pulsar
import pytest

from pyspark_pulsar import reader_worker
from pyspark_pulsar.admin import AdminClient
from pyspark_pulsar.attempts import Attempt
from pyspark_pulsar.errors import (
    AccessError,
    MalformedEntryError,
    PulsarSourceError,
    ReaderProcessError,
)
from pyspark_pulsar.offsets import Position, earliest
from pyspark_pulsar.range_reader import Step
from pyspark_pulsar.reader_pipe import read_frame
from pyspark_pulsar.reader_worker import portable
from tests.unit.pyspark_pulsar.fakes import CONNECTION, SCHEMA, T, settings, work

ATTEMPT = Attempt(work(earliest(T), Position(3, 1), (3, 2)), settings(), SCHEMA, begin=earliest(T))


class StubbornError(Exception):
    """Cannot be made from its arguments."""

    def __init__(self, one: str, other: str) -> None:
        super().__init__(f"{one} {other}")


def raised(error: Exception) -> Exception:
    try:
        raise error
    except Exception as caught:
        return portable(caught)


def test_the_sources_own_errors_keep_their_text_alone() -> None:
    error = pickle.loads(pickle.dumps(raised(AccessError("refused"))))
    assert (type(error), str(error)) == (AccessError, "refused")
    assert not hasattr(error, "__notes__")
    malformed = pickle.loads(pickle.dumps(raised(MalformedEntryError(3, 7))))
    assert (malformed.ledger_id, malformed.entry_id) == (3, 7)


def test_other_errors_bring_their_traceback() -> None:
    error = pickle.loads(pickle.dumps(raised(pulsar.TopicNotFound("gone"))))
    assert isinstance(error, pulsar.TopicNotFound)
    (note,) = error.__notes__
    assert note.startswith("In the process that reads from the broker:\nTraceback")


def test_a_want_of_memory_is_an_end_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(*_: object) -> Iterator[Step]:
        yield Step(None, Position(3, 0), ())
        raise MemoryError

    monkeypatch.setattr(reader_worker, "read", read)
    monkeypatch.setattr(reader_worker, "limit_memory", lambda _: None)
    reads, writes = os.pipe()
    reader_worker.serve(ATTEMPT, AdminClient(CONNECTION), writes)
    assert isinstance(read_frame(reads)[0], Step)
    error, _ = read_frame(reads)
    assert isinstance(error, ReaderProcessError)
    assert (str(error), error.is_by_client) == (
        "the process that reads from the broker ended for want of memory", True)  # fmt: skip
    os.close(reads)
    os.close(writes)


def test_an_error_that_cannot_be_sent_is_told_as_text() -> None:
    error = raised(StubbornError("a", "b"))
    assert type(error) is PulsarSourceError
    assert "StubbornError: a b" in str(error)
