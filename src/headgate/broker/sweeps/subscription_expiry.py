"""The sweep that deletes durable subscriptions which had no consumer for too long.

A broker that restarts each day must not take each subscription for a used one. So the sweep stores
since when the subscriptions of topics with an expiration time have no consumer: one row for each
topic, which changes only when a consumer came or left. A subscription that lost its consumer after
the last sweep before a crash counts as used until the next start.
"""

from __future__ import annotations

import logging
from heapq import nsmallest
from operator import itemgetter
from typing import Final

from headgate.base.errors import HeadgateError
from headgate.base.units import MS_PER_S, S_PER_MINUTE
from headgate.base.work_units import SUBSCRIPTION_LOOKED_AT
from headgate.broker.slices import Pace, Turns, live_topics
from headgate.broker.sweeps.subscription_changes import SubscriptionChanges
from headgate.engine.engine import Engine
from headgate.engine.subscription import Subscription
from headgate.engine.topic import Topic
from headgate.metadata.catalog import Catalog
from headgate.metadata.rows import IdleSubscriptionsRow
from headgate.policy.expiry_table import ExpiryTable
from headgate.storage.metadata_writer import MetadataWriter

logger = logging.getLogger("headgate.sweeps")

ROWS_PER_COMMIT: Final = 64
"""Topics whose rows are stored together, fewer if they have many subscriptions."""

STORED_MAX: Final = 4_096
"""Subscriptions of one topic whose idle times are stored: of more, those that are idle longest."""


NAMED_MAX: Final = 5
"""Deleted subscriptions that the line in the log names."""


class SubscriptionExpiry:
    """Deletes the expired subscriptions of one broker."""

    def __init__(
        self,
        engine: Engine,
        catalog: Catalog,
        writer: MetadataWriter,
        table: ExpiryTable,
        subscriptions: SubscriptionChanges,
        turns: Turns,
    ) -> None:
        self._engine = engine
        self._catalog = catalog
        self._writer = writer
        self._table = table
        self._subscriptions = subscriptions
        self._turns = turns

    async def expire(self) -> None:
        """Delete the subscriptions that have expired, and store since when others are idle."""
        self._turns.begin_turn()
        pace = Pace(self._turns)
        changed: dict[Topic, dict[str, int]] = {}
        named_count = 0
        deleted: list[str] = []
        async for topic in live_topics(self._engine, self._turns):
            minutes = self._table.subscription_expiration_min(topic.name)
            stored = self._catalog.idle_subscriptions(topic.name.full)
            if not minutes and not stored.since_ms:
                continue  # most topics
            idle = _idle(topic) if minutes else []
            if pace.spent(SUBSCRIPTION_LOOKED_AT * len(topic.subscriptions)):
                await pace.give_way()
            expired_ms = self._engine.log_ms - minutes * S_PER_MINUTE * MS_PER_S
            kept = {each.name: each.idle_since_ms for each in idle}
            for subscription in idle:
                if subscription.idle_since_ms <= expired_ms and await self._delete(
                    subscription, expired_ms
                ):
                    del kept[subscription.name]
                    deleted.append(f"{subscription.name} of {topic.name}")
            if len(kept) > STORED_MAX:
                kept = dict(nsmallest(STORED_MAX, kept.items(), itemgetter(1)))
            if kept != stored.since_ms:
                changed[topic] = kept
                named_count += len(kept)
            if len(changed) >= ROWS_PER_COMMIT or named_count >= STORED_MAX:
                await self._store(changed)
                changed, named_count = {}, 0
        if changed:
            await self._store(changed)
        if deleted:
            logger.info(
                "%d subscriptions had no consumer for too long and are deleted, the first: %s",
                len(deleted), "; ".join(deleted[:NAMED_MAX]),
            )  # fmt: skip

    async def _delete(self, subscription: Subscription, expired_ms: int) -> bool:
        """Delete a subscription, unless it was used meanwhile; returns whether it is gone."""

        def is_used() -> bool:
            return bool(subscription.consumers) or subscription.idle_since_ms > expired_ms

        topic = subscription.topic.name
        try:
            await self._subscriptions.delete(subscription, unless=is_used)
        except HeadgateError as error:
            logger.warning(
                "expired subscription %s of %s is not deleted: %s", subscription.name, topic, error
            )
        self._turns.begin_turn()
        return subscription.removed

    async def _store(self, found: dict[Topic, dict[str, int]]) -> None:
        """Store since when subscriptions are idle, of those that still are. A consumer that comes
        from now on makes a later change (``TopicRegistry.note_use``)."""
        rows = {
            topic.name.full: IdleSubscriptionsRow(_still_idle(topic, since_ms))
            for topic, since_ms in found.items()
            if topic.is_live
        }
        await self._writer.commit(self._catalog.plan_idle_subscriptions(rows))


def _still_idle(topic: Topic, since_ms: dict[str, int]) -> dict[str, int]:
    """The subscriptions of a topic that had no consumer meanwhile, and that none is about to
    join."""
    subscriptions = topic.subscriptions
    kept: dict[str, int] = {}
    for name, idle_since_ms in since_ms.items():
        subscription = subscriptions.get(name)
        if (
            subscription is not None
            and not subscription.consumers
            and subscription.idle_since_ms == idle_since_ms
        ):
            kept[name] = idle_since_ms
    return kept


def _idle(topic: Topic) -> list[Subscription]:
    """The durable subscriptions of a topic without consumers."""
    if topic.log.damage or topic.fenced:
        return []
    return [
        each
        for each in topic.subscriptions.values()
        if each.is_durable and not each.consumers and not each.fenced
    ]
