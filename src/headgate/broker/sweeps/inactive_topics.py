"""The sweep that deletes inactive topics."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from headgate.base.errors import HeadgateError
from headgate.base.names import TopicName
from headgate.base.units import NS_PER_S
from headgate.broker.registry import TopicRegistry
from headgate.broker.slices import Turns, live_topics
from headgate.engine.engine import Engine
from headgate.engine.topic import Topic
from headgate.metadata.policies import Retention
from headgate.policy.settings import Settings

logger = logging.getLogger("headgate.sweeps")


class InactiveTopics:
    """Deletes topics that had neither producers nor subscriptions for a whole period, if their
    retention is zero."""

    def __init__(
        self,
        engine: Engine,
        settings: Settings,
        registry: TopicRegistry,
        retention_of: Callable[[TopicName], Retention],
        turns: Turns,
    ) -> None:
        self._engine = engine
        self._settings = settings
        self._registry = registry
        self._retention_of = retention_of
        self._turns = turns

    async def delete(self) -> None:
        """Delete all inactive topics, if the settings allow that."""
        if not self._settings.brokerDeleteInactiveTopicsEnabled:
            return
        self._turns.begin_turn()
        topics = live_topics(self._engine, self._turns)
        inactive = [topic async for topic in topics if self._is_inactive(topic)]
        for topic in inactive:
            try:
                # A role that has its right from this topic alone may use it again later.
                await self._registry.delete(
                    topic.name,
                    force=False,
                    unless=partial(self._is_in_use, topic),
                    keeps_grants=True,
                )
            except HeadgateError as error:
                logger.warning("inactive %s is not deleted: %s", topic.name, error)

    def _is_inactive(self, topic: Topic) -> bool:
        period_ns = self._settings.brokerDeleteInactiveTopicsFrequencySeconds * NS_PER_S
        return (
            topic.is_unused()
            and not topic.log.damage
            and not topic.is_system
            and topic.name.partition < 0
            and self._engine.now_ns - topic.idle_since_ns >= period_ns
            and self._retention_of(topic.name) == Retention(0, 0)
        )

    def _is_in_use(self, topic: Topic) -> bool:
        """Whether the topic was used or unloaded since the sweep found it inactive."""
        self._turns.begin_turn()
        return not topic.is_live or not self._is_inactive(topic)
