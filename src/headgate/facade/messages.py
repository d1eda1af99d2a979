"""Single messages and the stored entries of topics, over a running broker."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from headgate.base.errors import CorruptionError
from headgate.base.names import TopicName
from headgate.base.positions import LATEST, Position
from headgate.broker.backlog_analysis import count_backlog, nth_unacked
from headgate.broker.entries import Reserve, uncharged
from headgate.broker.slices import AdminTurns
from headgate.engine.topic import Topic
from headgate.facade.message_protocol import BacklogAnalysis, PlacedEntry
from headgate.facade.refusals import refusals
from headgate.metadata.errors import not_allowed, not_found

if TYPE_CHECKING:
    from headgate.broker.service import Broker
    from headgate.engine.subscription import Subscription


class TopicMessages:
    """The :class:`~headgate.facade.message_protocol.MessageOperations` of one broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._turns = AdminTurns(broker)

    async def analyze_backlog(
        self, topic: TopicName, subscription: str, start: Position | None, *, excluded: bool
    ) -> BacklogAnalysis:
        found = self._subscription(topic, subscription)
        log = found.topic.log
        first = 0
        if start is not None:
            first = log.end if start == LATEST else log.ordinal_at_or_after(*start)
            if excluded and first < log.end and log.position(first) == start:
                first += 1
        index = self._broker.logs.of(found.topic).index
        with refusals():
            counted = await count_backlog(found, first, index, self._turns)
        analysis = BacklogAnalysis(
            entries=counted.entries,
            messages=counted.messages,
            filter_accepted_entries=counted.entries,
            filter_accepted_messages=counted.messages,
        )
        if counted.first is not None and counted.last is not None:
            analysis.first_message_id = str(log.position(counted.first))
            analysis.last_message_id = str(log.position(counted.last))
        return analysis

    async def peek(
        self, topic: TopicName, subscription: str, number: int, reserve: Reserve = uncharged
    ) -> PlacedEntry:
        found = self._subscription(topic, subscription)
        with refusals():
            ordinal = await nth_unacked(found, number, self._turns)
        if ordinal is None:
            raise not_found("Message not found")
        return await self._entry(found.topic, ordinal, reserve)

    async def examine(
        self, topic: TopicName, number: int, reserve: Reserve = uncharged, *, from_end: bool
    ) -> PlacedEntry:
        found = self._topic(topic)
        log = found.log
        count = log.end - log.first
        if count <= 0:
            raise not_allowed("Could not examine messages due to the total message is zero")
        if number > count:
            raise not_found(f"Message {number} not found: {topic} holds {count} entries")
        ordinal = log.end - number if from_end else log.first + number - 1
        return await self._entry(found, ordinal, reserve)

    async def bytes_from(self, topic: TopicName, position: Position) -> int:
        found = self._topic(topic)
        log = found.log
        ordinal = log.end if position == LATEST else log.ordinal_at_or_after(*position)
        index = self._broker.logs.of(found).index
        before = await index.look_up(partial(log.bytes_before, max(ordinal, log.first)))
        return log.bytes_before(log.end) - before

    async def trim(self, topic: TopicName) -> None:
        await self._broker.trimming.trim_now(self._topic(topic))

    async def truncate(self, topic: TopicName) -> None:
        found = self._topic(topic)
        trimming, subscriptions = self._broker.trimming, self._broker.subscriptions
        with refusals():
            found.check_not_damaged()
            end = await trimming.begin_truncation(found)
            for subscription in list(found.subscriptions.values()):
                await subscriptions.when_idle(found, subscription.name)
                if subscription.removed:
                    continue
                held = await subscriptions.load_passed(subscription, end - 1)
                subscription.skip_to(end)
                del held
                await self._turns.give_way(1)
        await trimming.trim_now(found)
        await self._broker.when_durable(found)

    async def _entry(self, topic: Topic, ordinal: int, reserve: Reserve) -> PlacedEntry:
        position = topic.log.position(ordinal)
        with refusals():
            try:
                entry = await self._broker.entries.stored_entry(topic, ordinal, reserve)
                return PlacedEntry(position, entry)
            except CorruptionError:
                if ordinal < topic.log.first:  # trimmed while it was read
                    raise not_found("Message not found") from None
                raise

    def _topic(self, name: TopicName) -> Topic:
        self._broker.begin_turn()
        topic = self._broker.registry.get(name)
        if topic is None:
            raise not_found(f"Topic {name} not found")
        return topic

    def _subscription(self, name: TopicName, subscription: str) -> Subscription:
        found = self._topic(name).subscriptions.get(subscription)
        if found is None:
            raise not_found(f"Subscription {subscription} not found for topic {name}")
        return found
