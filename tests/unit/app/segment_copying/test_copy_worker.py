"""What the process that copies segments answers, run in a thread here."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from headgate.app.segment_copying.copy_worker import CopyWorker
from headgate.app.segment_copying.messages import BEGIN, READY, STEP, Failed, receive, send
from headgate.fs import MemFs
from headgate.ledger.space.segment_copy import CopyTask
from tests.unit.ledger.support import DIRECTORY, sparse_log

TASK = CopyTask(DIRECTORY, (1, 2), 3, 4)


class Worker:
    """The other end of both pipes."""

    def __init__(self, fs: MemFs) -> None:
        self._requests, self._ask = os.pipe()
        self._hear, self._answers = os.pipe()
        self._thread = threading.Thread(target=CopyWorker(fs, self._requests, self._answers).run)
        self._thread.start()

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
            failed = found.ask(TASK._replace(segments=(0x999,)), BEGIN, STEP)
            assert isinstance(failed, Failed)
            assert failed.kind == "system"
        failed = found.ask(TASK._replace(directory="/elsewhere"), BEGIN, STEP)
        assert isinstance(failed, Failed)
