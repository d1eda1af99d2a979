"""What the process that copies segments answers, run in a thread here."""

from __future__ import annotations

import os
import threading
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from headgate.app.segment_copying.copy_worker import CopyWorker
from headgate.app.segment_copying.messages import (
    BEGIN,
    READY,
    STEP_PIECES_MAX,
    Failed,
    Finished,
    Moved,
    Step,
    receive,
    send,
)
from headgate.base.units import MIB
from headgate.fs import MemFs
from headgate.ledger.index.columns import Columns, TopicTotals
from headgate.ledger.index.stored_run import StoredRun
from headgate.ledger.space.segment_copy import CopyTask, SegmentCopy, TopicPart
from tests.unit.ledger.support import DIRECTORY, sparse_log

TASK = CopyTask(DIRECTORY, (1, 2), 3, 4)


class Worker:
    """The other end of both pipes."""

    def __init__(self, fs: MemFs) -> None:
        self._requests, self._ask = os.pipe()
        self._hear, self._answers = os.pipe()
        self.now_s = 0.0
        self.slept_s: list[float] = []
        worker = CopyWorker(fs, self._requests, self._answers, lambda: self.now_s, self._sleep)
        self._thread = threading.Thread(target=worker.run)
        self._thread.start()

    def _sleep(self, duration_s: float) -> None:
        self.slept_s.append(duration_s)
        self.now_s += duration_s

    def ask(self, *messages: object) -> Any:
        """Send messages; returns the answer to the last."""
        for each in messages:
            send(self._ask, each)
        return receive(self._hear)

    def end(self) -> None:
        """Close the broker's end, and wait for the worker's."""
        os.close(self._ask)
        self._thread.join()
        for fd in (self._requests, self._hear, self._answers):
            os.close(fd)


@contextmanager
def worker(fs: MemFs) -> Iterator[Worker]:
    found = Worker(fs)
    try:
        assert found.ask() == READY
        yield found
    finally:
        found.end()


def test_it_ends_with_the_broker_even_in_the_middle_of_a_copy() -> None:
    with worker(MemFs()):
        pass
    with worker(MemFs()) as found:
        send(found._ask, TASK)


def test_after_a_failure_it_takes_the_next_task() -> None:
    fs = MemFs()
    sparse_log(fs)
    with worker(fs) as found:
        for _ in range(2):
            failed = found.ask(TASK._replace(segments=(0x999,)), BEGIN, Step.at(0))
            assert isinstance(failed, Failed)
            assert failed.kind == "system"
        failed = found.ask(TASK._replace(directory="/elsewhere"), BEGIN, Step.at(0))
        assert isinstance(failed, Failed)


def test_a_step_is_some_pieces_at_the_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    """But for the pause after the last of them, which the broker makes."""
    monkeypatch.setattr(SegmentCopy, "steps", lambda _: (each for each in [1_000] * 5))
    with worker(MemFs()) as found:
        assert found.ask(TASK, BEGIN, Step(4, 500)) == Moved(4_000, 0)
        assert found.slept_s == [2.0, 2.0, 2.0]
        assert found.ask(Step(4, 500)) == Moved(1_000, 0)
        assert found.slept_s[3:] == [2.0]


def test_without_a_rate_a_step_is_one_piece_and_a_high_rate_gives_no_long_step() -> None:
    assert Step.at(0).pieces_max == Step.at(1_000).pieces_max == 1
    assert Step.at(MIB) == Step(4, MIB)
    assert Step.at(1 << 40).pieces_max == STEP_PIECES_MAX


def test_answers_have_the_rows_of_their_own_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    """The runs of a footer have one table together. With each 64 of 32,400 topics all of it came:
    a start with a small log went from 973 to 1,640 MiB."""
    table = Columns(*(array(code, range(1_000)) for code in "IqIqq"))

    def steps(copy: SegmentCopy) -> Iterator[int]:
        after = TopicTotals(1, 1, 1, 1)
        for part in copy.parts:
            number = part.number
            copy.stored[number] = StoredRun(number, 0, 1, 7, 0, table, number, after, 128)
        yield from ()

    monkeypatch.setattr(SegmentCopy, "steps", steps)
    parts = [TopicPart(number, 0, 1, 1, [], [], {}) for number in range(4)]
    with worker(MemFs()) as found:
        assert found.ask(TASK, parts[:2], parts[2:], BEGIN, Step.at(0)) == Finished(0, 0)
        answers = [*receive(found._hear), *receive(found._hear)]
    assert [[*answer.stored.sparse.received] for answer in answers] == [[0], [1], [2], [3]]
