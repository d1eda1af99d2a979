"""The sweep that expires messages which no consumer acknowledged within their TTL.

It looks at a topic when its oldest unacknowledged message reaches the TTL, and at a topic without a
backlog when a message that arrives now could reach it (:mod:`headgate.flow.expiry`). So a publish
costs nothing, and a topic without a TTL is not looked at. Durable subscriptions lose the messages,
also those without consumers; readers read what is retained.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable
from functools import partial

from headgate.base.errors import HeadgateError
from headgate.base.names import TopicName
from headgate.base.units import MS_PER_S, S_PER_MINUTE
from headgate.base.work_units import (
    SUBSCRIPTION_EXPIRED,
    SUBSCRIPTION_LOOKED_AT,
    TOPIC_TRIMMED,
)
from headgate.broker.slices import Pace, Turns
from headgate.broker.sweeps.due_topics import DueTopics
from headgate.broker.sweeps.subscription_changes import SubscriptionChanges
from headgate.broker.sweeps.tenant_lines import Measured, TenantLines
from headgate.broker.sweeps.trimming import order_cursors
from headgate.engine.engine import Engine
from headgate.engine.topic import Topic
from headgate.flow.expiry import LOOK_MS_MIN, MessageTtl, first_kept_ms, next_expiry_look_ms
from headgate.policy.settings import Settings
from headgate.storage.managed_logs import ManagedLogs

logger = logging.getLogger("headgate.sweeps")


class MessageExpiry:
    """Expires the messages of one broker's topics."""

    def __init__(
        self,
        engine: Engine,
        logs: ManagedLogs,
        settings: Settings,
        ttl_of: Callable[[TopicName], MessageTtl | None],
        subscriptions: SubscriptionChanges,
        turns: Turns,
        measured: Measured,
    ) -> None:
        """``ttl_of`` gives the TTL in force."""
        self._engine = engine
        self._logs = logs
        self._settings = settings
        self._ttl_of = ttl_of
        self._subscriptions = subscriptions
        self._turns = turns
        self._touched: OrderedDict[Topic, None] = OrderedDict()
        """Topics whose TTL may have changed. To take the first of a dict passes all that were taken
        before: 13 ns each, for each of 100,000 topics."""
        self._due = DueTopics()
        self._lines = TenantLines("the message expiry sweep", self._take, turns, measured)

    def touch(self, topic: Topic) -> None:
        """Look at a topic soon: it was loaded, or its TTL may have changed."""
        self._touched[topic] = None

    def forget(self, topic: Topic) -> None:
        """Do not look at a topic that is unloaded."""
        self._touched.pop(topic, None)
        self._due.discard(topic)
        self._lines.forget(topic)

    def stop(self) -> None:
        """End what is under way: the broker ends."""
        self._lines.stop()

    async def expire(self) -> None:
        """Look at the topics that were touched or are due. Call it about once a second."""
        self._turns.begin_turn()
        pace = Pace(self._turns)
        await self._take_touched(pace)
        for topic in self._due.take(self._engine.log_ms):
            # Until the look has its result: an error in between must not lose the topic.
            self._due.set(topic, self._engine.log_ms + LOOK_MS_MIN)
            self._lines.add(topic)
            if pace.spent(SUBSCRIPTION_LOOKED_AT):
                await pace.give_way()
        await self._lines.wait()

    async def _take(self, topic: Topic, pace: Pace) -> None:
        """Look at a topic whose turn has come."""
        try:
            await self._look(topic, pace)
        except HeadgateError as error:
            logger.error("expiring messages of %s waits: %s", topic.name, error)
        if pace.spent(TOPIC_TRIMMED):
            await pace.give_way()

    async def _take_touched(self, pace: Pace) -> None:
        """Have those of the touched topics looked at now that have a TTL: after a start, or a
        change of the broker's setting, these may be all."""
        for _ in range(len(self._touched)):
            if not self._touched:
                break  # unloaded meanwhile
            topic, _ = self._touched.popitem(last=False)
            if self._ttl_of(topic.name) is None:
                self._due.discard(topic)
            else:
                self._due.set(topic, self._engine.log_ms)
            if pace.spent(SUBSCRIPTION_LOOKED_AT):
                await pace.give_way()

    async def _look(self, topic: Topic, pace: Pace) -> None:
        """Expire what is too old in a topic, and note when to look again."""
        await order_cursors(topic, pace)
        ttl = self._ttl_of(topic.name)
        if ttl is None or not topic.is_live:
            self._due.discard(topic)
            return
        if topic.log.damage or topic.fenced:
            return  # the next look follows
        has_expired = False
        oldest_ms = await self._oldest_ms(topic)
        if oldest_ms is not None and oldest_ms < first_kept_ms(self._engine.log_ms, ttl):
            has_expired = await self._expire(topic, ttl, pace)
            oldest_ms = await self._oldest_ms(topic) if topic.is_live else None
        if not topic.is_live:
            self._due.discard(topic)
            return
        interval_ms = self._settings.messageExpiryCheckIntervalInMinutes * S_PER_MINUTE * MS_PER_S
        self._due.set(
            topic,
            next_expiry_look_ms(
                self._engine.log_ms, ttl, oldest_ms, interval_ms, has_expired=has_expired
            ),
        )

    async def _oldest_ms(self, topic: Topic) -> int | None:
        """When the oldest message was received that a durable subscription has not acknowledged;
        None without one."""
        log = topic.log

        def find() -> int | None:
            # Again before each look-up: the topic may be trimmed while the index is read.
            ordinal = topic.first_needed_ordinal()
            return log.received_ms(ordinal) if ordinal < log.end else None

        received_ms = await self._logs.of(topic).index.look_up(find, is_upkeep=True)
        self._turns.begin_turn()
        return received_ms

    async def _expire(self, topic: Topic, ttl: MessageTtl, pace: Pace) -> bool:
        """Move each durable subscription behind the messages that are too old; returns whether one
        lost any. Those that clients add or move back meanwhile have their turn at the next look:
        there may always be one, and the topics of all others wait."""
        find = partial(
            topic.log.ordinal_received_at_or_after, first_kept_ms(self._engine.log_ms, ttl)
        )
        end = await self._logs.of(topic).index.look_up(find, is_upkeep=True)
        self._turns.begin_turn()
        has_expired = False
        for _ in range(topic.durable_count):
            oldest = topic.cursors.oldest_durable() if topic.is_live else None
            if oldest is None or oldest.acks.mark_delete + 1 >= end or oldest.fenced:
                break  # a subscription that moves now has its turn at the next look
            held = await self._subscriptions.load_passed(oldest, end - 1, is_upkeep=True)
            expired = oldest.expire_to(end, ttl)
            if expired:
                has_expired = True
                self._engine.observer.expired(oldest, ttl, expired)
            del held
            if pace.spent(SUBSCRIPTION_EXPIRED):
                await pace.give_way()
                await order_cursors(topic, pace)
        self._logs.of(topic).committer.commit_if_idle()
        return has_expired
