"""The sweep that deletes inactive topics."""

from __future__ import annotations

import logging
from collections import defaultdict
from functools import partial

from headgate.base.errors import HeadgateError
from headgate.base.names import TopicName
from headgate.base.units import NS_PER_MINUTE, NS_PER_S
from headgate.base.work_units import SUBSCRIPTION_LOOKED_AT
from headgate.broker.registry import TopicRegistry
from headgate.broker.slices import Pace, Turns, live_topics
from headgate.engine.engine import Engine
from headgate.engine.topic import Topic
from headgate.metadata.policies import InactiveTopicPolicies
from headgate.policy.resolver import PolicyResolver
from headgate.policy.settings import Settings

logger = logging.getLogger("headgate.sweeps")

ASKED_PER_UNIT = 8
"""Subscriptions without a backlog that a look at a topic passes with 1 unit."""


class InactiveTopics:
    """Deletes topics that nobody used for as long as their policies say, and whose retention has
    ended.

    A topic with producers or consumers is used. One with subscriptions is used as long as it has
    any, or as long as one of them has a backlog: its ``inactiveTopicPolicies`` decide. A partition
    is deleted only together with its whole partitioned topic.
    """

    def __init__(
        self,
        engine: Engine,
        settings: Settings,
        registry: TopicRegistry,
        policies: PolicyResolver,
        turns: Turns,
    ) -> None:
        self._engine = engine
        self._settings = settings
        self._registry = registry
        self._policies = policies
        self._turns = turns

    async def delete(self) -> None:
        """Delete all inactive topics."""
        self._turns.begin_turn()
        inactive: list[Topic] = []
        partitions: defaultdict[TopicName, list[Topic]] = defaultdict(list)
        pace = Pace(self._turns)
        async for topic in live_topics(self._engine, self._turns):
            if pace.spent(SUBSCRIPTION_LOOKED_AT * len(topic.subscriptions) / ASKED_PER_UNIT):
                await pace.give_way()
            if not topic.is_live or not self._is_inactive(topic):
                continue
            base = topic.name.base
            if topic.name.partition < 0 or not self._registry.partitions(base):
                inactive.append(topic)
            elif self._settings.brokerDeleteInactivePartitionedTopicMetadataEnabled:
                partitions[base].append(topic)
        for topic in inactive:
            await self._delete(topic.name, [topic])
        for base, parts in partitions.items():
            if len(parts) == self._registry.partitions(base):
                await self._delete(base, parts)

    async def _delete(self, name: TopicName, topics: list[Topic]) -> None:
        try:
            # A role that has its right from this topic alone may use it again later.
            await self._registry.delete(
                name, force=False, unless=partial(self._are_in_use, topics), keeps_grants=True
            )
        except HeadgateError as error:
            logger.warning("inactive %s is not deleted: %s", name, error)

    def _is_inactive(self, topic: Topic) -> bool:
        """Whether a topic may be deleted now. One that is used is idle from now on at the
        earliest."""
        policy = self._policies.expiry.inactive_topic(topic.name)
        if not policy.delete_while_inactive or topic.log.damage or topic.is_system:
            return False
        if topic.has_clients() or _keep(topic, policy):
            topic.touch_idle()
            return False
        idle_ns = self._engine.now_ns - topic.idle_since_ns
        if idle_ns < policy.max_inactive_duration_seconds * NS_PER_S:
            return False
        retention_min = self._policies.applied_retention(topic.name).retention_time_in_minutes
        return 0 <= retention_min * NS_PER_MINUTE <= idle_ns

    def _are_in_use(self, topics: list[Topic]) -> bool:
        """Whether a topic was used or unloaded since the sweep found them inactive."""
        self._turns.begin_turn()
        return not all(topic.is_live and self._is_inactive(topic) for topic in topics)


def _keep(topic: Topic, policy: InactiveTopicPolicies) -> bool:
    """Whether the subscriptions of a topic without clients keep it."""
    if policy.inactive_topic_delete_mode == "delete_when_no_subscriptions":
        return bool(topic.subscriptions)
    return any(each.backlog_entries for each in topic.subscriptions.values())
