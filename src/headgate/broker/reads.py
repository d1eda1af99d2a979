"""Backlog reads: entries that are no longer in memory come back through the read lane."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from headgate.base.errors import CorruptionError, StorageError
from headgate.base.units import MIB, NS_PER_S
from headgate.broker.lanes import Lane
from headgate.engine.engine import Engine
from headgate.engine.subscription import Subscription
from headgate.ledger import CommitLog, ReadPlan

logger = logging.getLogger("headgate.reads")

READ_ENTRIES_MAX = 512
READ_BYTES_MAX = 4 * MIB
"""Bounds of one read: it serves every topic that waits for the same stretch of the log."""

CACHE_PARTS = 4
"""One read brings at most this part of the cache's size, so that it is not evicted by itself."""

RETRY_NS = NS_PER_S
"""After a read that the disk refused the next try waits this long."""


class Reader:
    """Reads for subscriptions that wait for entries on disk.

    A read that the disk refuses is tried again until it succeeds. A damaged entry is never served
    and, once it is known alone, never read again: its subscription stands still in front of it, in
    state ``storage``, until somebody skips it.
    """

    def __init__(
        self, log: CommitLog, lane: Lane, engine: Engine, begin_turn: Callable[[], None]
    ) -> None:
        self._log = log
        self._lane = lane
        self._engine = engine
        self._begin_turn = begin_turn
        self._waiting: dict[int, list[Subscription]] = {}
        self._damaged: dict[tuple[int, int], str] = {}
        """What is wrong with an entry, by topic number and ordinal."""

    def read(self, subscription: Subscription, ordinal: int) -> None:
        """Bring entries from ``ordinal`` on into the topic's cache."""
        damage = self._damaged.get((subscription.topic.log.number, ordinal))
        if damage is None:
            self._submit(subscription, ordinal, READ_ENTRIES_MAX)
        else:
            subscription.read_failed = damage
            subscription.dispatcher.reading = False

    def _submit(self, subscription: Subscription, ordinal: int, entries_max: int) -> None:
        number = subscription.topic.log.number
        bytes_max = min(READ_BYTES_MAX, self._engine.cache.size_bytes_max // CACHE_PARTS)
        plan = self._log.locate(self._log.topic(number), ordinal, entries_max, bytes_max)
        plan.wanted_topics.update(self._waiting)
        plan.wanted_topics.add(number)
        self._waiting.setdefault(number, []).append(subscription)
        self._lane.submit(partial(self._log.read, plan), partial(self._done, subscription, plan))

    def _done(
        self,
        subscription: Subscription,
        plan: ReadPlan,
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
            if not subscription.removed:
                self._failed(subscription, plan, error)
            return
        if error is not None:
            raise error
        cache, by_number = self._engine.cache, self._engine.by_number
        # Backwards: where they do not all fit into the cache, those that are sent first stay.
        for topic_number, ordinal, body in reversed(entries or ()):
            topic = by_number.get(topic_number)
            if topic is not None and ordinal >= topic.log.first:
                cache.put(topic.cache, ordinal, body)
                topic.entries_read += 1
        if not subscription.removed:
            subscription.read_failed = ""
            subscription.entries_read()

    def _failed(
        self, subscription: Subscription, plan: ReadPlan, error: StorageError | CorruptionError
    ) -> None:
        """Look closer, try later, or leave the subscription where it is."""
        ordinal = plan.first_ordinal
        if isinstance(error, CorruptionError) and plan.count > 1:
            # One of them is damaged: those before it can still be served.
            if ordinal >= subscription.topic.log.first:
                self._submit(subscription, ordinal, plan.count // 2)
            else:
                subscription.entries_read()
            return
        name = subscription.topic.name
        if subscription.read_failed != str(error):
            logger.error("reading %s for %s: %s", name, subscription.name, error)
        subscription.read_failed = str(error)
        if isinstance(error, CorruptionError):
            self._damaged[plan.topic_number, ordinal] = str(error)
            subscription.entries_read()
        else:
            self._engine.wake_at(
                self._engine.now_ns + RETRY_NS, partial(self._try_again, subscription)
            )

    @staticmethod
    def _try_again(subscription: Subscription) -> None:
        if not subscription.removed:
            subscription.entries_read()
