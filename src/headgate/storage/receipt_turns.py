"""The receipts of large commits, of which tenants take turns.

A commit may have entries of thousands of topics, and their receipts take many iterations of the
loop. Those of the next commits join them: who sends one message does not wait for the receipts of
all that another tenant sent before.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final

from headgate.base.errors import StorageError
from headgate.base.fair_queue import FairQueue
from headgate.base.work_units import (
    JOB_STEP_UNITS_MAX,
    RECEIPTS_PER_UNIT,
    TOPIC_DURABLE,
    WAITER_TOLD,
)
from headgate.engine.engine import Engine
from headgate.engine.topic import Topic
from headgate.ledger import TopicLog

ENTRIES_A_STEP: Final = (JOB_STEP_UNITS_MAX - TOPIC_DURABLE) * RECEIPTS_PER_UNIT
"""Receipts of a topic in one of its turns."""


class _Commit:
    """One whose receipts are not all sent."""

    __slots__ = ("failure", "left", "storage_ns", "waiting")

    def __init__(
        self,
        waiting: list[asyncio.Future[None]],
        storage_ns: int = 0,
        failure: Callable[[], StorageError | None] | None = None,
    ) -> None:
        self.left = 0
        """Topics whose receipts of it are not all sent."""
        self.waiting = waiting
        self.storage_ns = storage_ns
        self.failure = failure
        """What those who wait are told then; without it that all is well."""


class ReceiptTurns:
    """The receipts of one log's commits."""

    def __init__(self, engine: Engine, on_sent: Callable[[], None]) -> None:
        """``on_sent`` is called when the receipts of a commit are sent, and others are not."""
        self._engine = engine
        self._on_sent = on_sent
        self._lines: FairQueue[tuple[Topic, int, _Commit]] = FairQueue()
        """Topics, each with the end of its entries in a commit."""
        self._commits: deque[_Commit] = deque()

    def add(
        self, touched: list[TopicLog], waiting: list[asyncio.Future[None]], storage_ns: int
    ) -> None:
        """A commit ended that took ``storage_ns`` and made entries of ``touched`` durable. Those
        who wait are told when all receipts are sent, those of earlier commits too: who hears that
        all is durable may rely on that, to unload a topic for example."""
        commit = _Commit(waiting, storage_ns)
        by_number = self._engine.by_number
        for log in touched:
            topic = by_number.get(log.number)
            if topic is not None:
                commit.left += 1
                self._lines.add(topic.name.tenant, (topic, log.end, commit))
        self._commits.append(commit)

    def add_waiting(
        self, waiting: list[asyncio.Future[None]], failure: Callable[[], StorageError | None]
    ) -> None:
        """Some who have nothing to wait for but the receipts."""
        self._commits.append(_Commit(waiting, failure=failure))

    def steps(self) -> Iterator[int]:
        """Send the receipts, until no commit is left; yields the units of each step."""
        commits = self._commits
        while commits:
            if not commits[0].left:
                done = commits.popleft()
                yield from telling(done.waiting, None if done.failure is None else done.failure())
                if commits:
                    self._on_sent()
            else:
                yield self._send_some()

    def _send_some(self) -> int:
        one = topic, end, commit = self._lines.take()
        publishing = topic.publishing
        first = publishing.visible
        if topic.is_live and first < end:
            publishing.entries_durable(commit.storage_ns, min(end - first, ENTRIES_A_STEP))
        if topic.is_live and publishing.visible < end:
            self._lines.put_back(topic.name.tenant, one)
        else:
            commit.left -= 1
        return TOPIC_DURABLE + (publishing.visible - first) // RECEIPTS_PER_UNIT


def telling(waiting: list[asyncio.Future[None]], error: StorageError | None) -> Iterator[int]:
    """Tell those who waited for a commit."""
    for future in waiting:
        if future.done():
            continue
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)
        yield WAITER_TOLD
