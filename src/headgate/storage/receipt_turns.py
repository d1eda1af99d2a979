"""The receipts of large commits, of which tenants take turns.

A commit may have entries of thousands of topics, and their receipts take many iterations of the
loop. Those of the next commits join them: who sends one message does not wait for the receipts of
all that another tenant sent before, nor does who waits for a commit.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
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

TOLD_A_STEP: Final = JOB_STEP_UNITS_MAX // WAITER_TOLD
"""Those who waited for a commit that are told between two such turns."""


class ReceiptTurns:
    """The receipts of one log's commits."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lines: FairQueue[tuple[Topic, int, int | asyncio.Future[None]]] = FairQueue()
        """Topics, each with the end of its entries in a commit and how long that took; among those
        of a tenant who waits for receipts of that tenant."""
        self._waiting: deque[asyncio.Future[None]] = deque()
        """Those who waited for commits, and are not told yet."""

    def add(
        self, touched: list[TopicLog], waiting: list[asyncio.Future[None]], storage_ns: int
    ) -> None:
        """A commit ended that took ``storage_ns`` and made entries of ``touched`` durable. Those
        who waited for it do not wait for receipts, which other tenants may have very many of."""
        by_number = self._engine.by_number
        for log in touched:
            topic = by_number.get(log.number)
            if topic is not None:
                self._lines.add(topic.name.tenant, (topic, log.end, storage_ns))
        self._waiting.extend(waiting)

    def add_waiting(self, topic: Topic, future: asyncio.Future[None]) -> None:
        """One who waits until the receipts that the topic's tenant has now are sent."""
        self._lines.add(topic.name.tenant, (topic, 0, future))

    def steps(self) -> Iterator[int]:
        """Send the receipts, until none is left; yields the units of each step."""
        while self._waiting or self._lines:
            if self._waiting:
                yield self._tell_some()  # and no more: very many must not hold up receipts
            if self._lines:
                yield self._send_some()

    def _tell_some(self) -> int:
        count = min(len(self._waiting), TOLD_A_STEP)
        return sum(telling([self._waiting.popleft() for _ in range(count)], None))

    def _send_some(self) -> int:
        one = topic, end, storage_ns = self._lines.take()
        if not isinstance(storage_ns, int):
            return sum(telling([storage_ns], None))
        publishing = topic.publishing
        first = publishing.visible
        if topic.is_live and first < end:
            publishing.entries_durable(storage_ns, min(end - first, ENTRIES_A_STEP))
        if topic.is_live and publishing.visible < end:
            self._lines.put_back(topic.name.tenant, one)
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
