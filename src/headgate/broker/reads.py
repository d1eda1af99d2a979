"""Backlog reads: entries that are no longer in memory come back through the read lane."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from headgate.base.errors import CorruptionError, StorageError
from headgate.base.units import MIB
from headgate.broker.lanes import Lane
from headgate.engine.engine import Engine
from headgate.engine.subscription import Subscription
from headgate.ledger import CommitLog

logger = logging.getLogger("headgate.reads")

READ_ENTRIES_MAX = 512
READ_BYTES_MAX = 4 * MIB
"""Bounds of one read: it serves every topic that waits for the same stretch of the log."""


class Reader:
    """Reads for subscriptions that wait for entries on disk."""

    def __init__(
        self, log: CommitLog, lane: Lane, engine: Engine, begin_turn: Callable[[], None]
    ) -> None:
        self._log = log
        self._lane = lane
        self._engine = engine
        self._begin_turn = begin_turn
        self._waiting: dict[int, list[Subscription]] = {}

    def read(self, subscription: Subscription, ordinal: int) -> None:
        """Bring entries from ``ordinal`` on into the topic's cache."""
        topic = subscription.topic
        number = topic.log.number
        plan = self._log.locate(self._log.topic(number), ordinal, READ_ENTRIES_MAX, READ_BYTES_MAX)
        plan.wanted_topics.update(self._waiting)
        plan.wanted_topics.add(number)
        self._waiting.setdefault(number, []).append(subscription)
        self._lane.submit(partial(self._log.read, plan), partial(self._done, subscription))

    def _done(
        self,
        subscription: Subscription,
        entries: list[tuple[int, int, bytes]] | None,
        error: BaseException | None,
    ) -> None:
        self._begin_turn()
        number = subscription.topic.log.number
        waiting = self._waiting[number]
        waiting.remove(subscription)
        if not waiting:
            del self._waiting[number]
        if isinstance(error, (StorageError, CorruptionError)):
            # The subscription stays in state `storage`: operators see it there and in this line.
            logger.error("reading %s for %s: %s", subscription.topic.name, subscription.name, error)
            subscription.read_failed = str(error)
            return
        if error is not None:
            raise error
        cache, by_number = self._engine.cache, self._engine.by_number
        for topic_number, ordinal, body in entries or ():
            topic = by_number.get(topic_number)
            if topic is not None and ordinal >= topic.log.first:
                cache.put(topic.cache, ordinal, body)
        if not subscription.removed:
            subscription.entries_read()
