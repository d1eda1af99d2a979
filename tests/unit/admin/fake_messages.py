"""Stored messages of a fake broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.base.names import TopicName
from headgate.base.positions import Position
from headgate.broker.entries import Reserve, uncharged
from headgate.facade.message_protocol import BacklogAnalysis, PlacedEntry
from headgate.metadata.errors import not_allowed, not_found

if TYPE_CHECKING:
    from tests.unit.admin.fake_facade import FakeFacade


class FakeMessages:
    """Implements ``headgate.facade.message_protocol.MessageOperations``."""

    def __init__(self, broker: FakeFacade, ledger: int) -> None:
        self._broker = broker
        self._ledger = ledger
        self.asked: list[object] = []
        """What was asked of messages, and which topics were trimmed."""

    async def analyze_backlog(
        self, topic: TopicName, subscription: str, start: Position | None, *, excluded: bool
    ) -> BacklogAnalysis:
        self.asked.append((start, excluded))
        found = self._broker.topic(topic).subscriptions.get(subscription)
        if found is None:
            raise not_found(f"Subscription {subscription} not found for topic {topic}")
        entries = len(self._broker.topic(topic).entries_ms) - found.next
        return BacklogAnalysis(entries=entries, messages=49 * entries)

    async def peek(
        self, topic: TopicName, subscription: str, number: int, reserve: Reserve = uncharged
    ) -> PlacedEntry:
        found = self._broker.topic(topic).subscriptions[subscription]
        return await self._placed(topic, found.next + number - 1, reserve)

    async def examine(
        self, topic: TopicName, number: int, reserve: Reserve = uncharged, *, from_end: bool
    ) -> PlacedEntry:
        count = len(self._broker.topic(topic).entries_ms)
        if not count:
            raise not_allowed("Could not examine messages due to the total message is zero")
        index = count - number if from_end else number - 1
        return await self._placed(topic, index, reserve)

    async def _placed(self, topic: TopicName, index: int, reserve: Reserve) -> PlacedEntry:
        position = Position(self._ledger, index)
        return PlacedEntry(position, await self._broker.entry(topic, position, reserve))

    async def bytes_from(self, topic: TopicName, position: Position) -> int:
        count = len(self._broker.topic(topic).entries_ms)
        return 100 * (count - max(position.entry_id, 0))

    async def trim(self, topic: TopicName) -> None:
        self._broker.topic(topic)
        self.asked.append(("trim", topic.full))

    async def truncate(self, topic: TopicName) -> None:
        self._broker.topic(topic)
        self.asked.append(("truncate", topic.full))
