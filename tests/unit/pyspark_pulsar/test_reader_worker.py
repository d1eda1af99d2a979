from __future__ import annotations

import math
import os
import pickle
import resource
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

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
from pyspark_pulsar.reader_worker import left_bytes, portable
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


def answers(
    monkeypatch: pytest.MonkeyPatch, attempt: Attempt, *parts: Step | Exception
) -> list[object]:
    """What a process sends whose attempt gives these parts."""

    def read(*_: object) -> Iterator[Step]:
        for part in parts:
            if isinstance(part, Exception):
                raise part
            yield part

    monkeypatch.setattr(reader_worker, "read", read)
    monkeypatch.setattr(reader_worker, "limit_memory", lambda _: None)
    reads, writes = os.pipe()
    reader_worker.serve(attempt, AdminClient(CONNECTION), writes)
    os.close(writes)
    sent: list[object] = []
    with suppress(EOFError):
        while True:
            sent.append(read_frame(reads)[0])
    os.close(reads)
    return sent


STEP = Step(None, Position(3, 0), ())


@pytest.mark.parametrize(
    "error",
    [MemoryError(), RuntimeError("can't start new thread"), RuntimeError("std::bad_alloc")],
)
def test_a_want_of_memory_is_an_end_of_the_process(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    step, ending = answers(monkeypatch, ATTEMPT, STEP, error)
    assert step == STEP
    assert isinstance(ending, ReaderProcessError)
    assert (str(ending), ending.is_by_client) == (
        "the process that reads from the broker ended for want of memory", True)  # fmt: skip


def test_a_stepwise_attempt_ends_before_its_listener_lacks_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The client drops the message of a listener that has none."""
    stepwise = replace(ATTEMPT, is_stepwise=True)
    monkeypatch.setattr(reader_worker, "left_bytes", lambda: reader_worker.RESERVE_BYTES)
    assert answers(monkeypatch, stepwise, STEP) == [STEP]
    monkeypatch.setattr(reader_worker, "left_bytes", lambda: reader_worker.RESERVE_BYTES - 1)
    (ending,) = answers(monkeypatch, stepwise, STEP)
    assert isinstance(ending, ReaderProcessError)
    assert answers(monkeypatch, ATTEMPT, STEP) == [STEP]


def test_what_is_left_of_the_memory_bound(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    statm = tmp_path / "statm"
    statm.write_text("88784 21995 11583 1 0 30 0\n")
    page_bytes = resource.getpagesize()
    bounds = iter([(100 * page_bytes, -1), (-1, -1), (1, -1)])
    monkeypatch.setattr(resource, "getrlimit", lambda _: next(bounds))
    assert left_bytes(str(statm)) == 70 * page_bytes
    assert left_bytes(str(statm)) == math.inf
    assert left_bytes(str(tmp_path / "none")) == math.inf


def test_an_error_that_cannot_be_sent_is_told_as_text() -> None:
    error = raised(StubbornError("a", "b"))
    assert type(error) is PulsarSourceError
    assert "StubbornError: a b" in str(error)
