"""Applies changed settings and policies to the engine and its live topics.

The engine asks for the limits and quotas of a topic when it loads the topic. When a policy or a
dynamic setting changes, this module makes the engine ask again for each topic that the change may
concern.
"""

from __future__ import annotations

import logging

from headgate.base.units import MIB, NS_PER_MS
from headgate.engine.engine import Engine
from headgate.engine.engine_limits import EngineLimits
from headgate.engine.topic import Topic
from headgate.metadata.catalog import Catalog, Change
from headgate.metadata.rows import Kind
from headgate.policy.dynamic_settings import DynamicSettings
from headgate.policy.resolver import PolicyResolver
from headgate.policy.settings import Settings

logger = logging.getLogger("headgate.broker")

_NAMES_WITH_POLICIES = frozenset((Kind.TOPIC_POLICIES, Kind.PARTITIONED))
_KINDS_OF_POLICIES = _NAMES_WITH_POLICIES | {Kind.SETTING, Kind.NAMESPACE}


def engine_limits(settings: Settings) -> EngineLimits:
    """The limits of an engine that starts with ``settings``."""
    return EngineLimits(
        settings.maxUnackedMessagesPerConsumer,
        settings.maxUnackedMessagesPerSubscription,
        settings.activeConsumerFailoverDelayTimeMillis * NS_PER_MS,
        settings.managedLedgerCursorBackloggedThreshold,
        settings.headgateHoldParkMs * NS_PER_MS,
        settings.headgateMaxParkedBytesPerConnection,
        settings.maxMessagePublishBufferSizeInMB * MIB,
    )


class PolicyUpdates:
    """Applies changes of the metadata within the turn of the caller."""

    def __init__(
        self,
        engine: Engine,
        catalog: Catalog,
        settings: Settings,
        dynamic: DynamicSettings,
        policies: PolicyResolver,
    ) -> None:
        self._engine = engine
        self._catalog = catalog
        self._settings = settings
        self._dynamic = dynamic
        self._policies = policies

    def use_stored_settings(self) -> None:
        """Apply the stored dynamic settings to the engine."""
        self._dynamic.use(self._catalog.settings())
        engine, settings = self._engine, self._settings
        engine.limits.parked_bytes_per_connection_max = settings.headgateMaxParkedBytesPerConnection
        hold_park_ns = settings.headgateHoldParkMs * NS_PER_MS
        if hold_park_ns != engine.limits.hold_park_ns:
            engine.limits.hold_park_ns = hold_park_ns
            engine.parked.holds_due()
        engine.parked.bounds_changed()
        engine.admission.sends_answered()
        engine.throttle_counts_entries = settings.dispatchThrottlingOnBatchMessageEnabled
        engine.throttle_spares_caught_up = (
            not settings.dispatchThrottlingOnNonBacklogConsumerEnabled
        )

    def set_broker_limits(self) -> None:
        """Apply the dispatch limit and the publish limit of the whole broker."""
        self._engine.set_broker_limit(self._policies.dispatch_limits.of_broker().limit)
        publish_limit = self._policies.publish_limits.of_broker().limit
        if publish_limit != self._engine.admission.limit:
            self._engine.admission.set_broker_limit(publish_limit)

    def apply_settings(self, change: Change) -> bool:
        """Apply the dynamic settings of a durable change; returns whether it has any."""
        keys = [row.key for row in change.rows if row.kind is Kind.SETTING]
        for key in keys:
            text = self._catalog.settings().get(key, "reset to its start-up value")
            logger.info("dynamic setting %s: %s", key, text)
        if keys:
            self.use_stored_settings()
            self.set_broker_limits()
        return bool(keys)

    def apply_policies(self, change: Change) -> None:
        """Apply the limits and quotas of a durable change to the live topics that it concerns."""
        kinds = {row.kind for row in change.rows}
        if kinds & _KINDS_OF_POLICIES:
            for topic in self._topics_concerned(change, everywhere=Kind.SETTING in kinds):
                self._engine.limits_of_topic(topic)
                self._engine.publish_limit_of_topic(topic)
                self._engine.quotas_of_topic(topic)

    def _topics_concerned(self, change: Change, *, everywhere: bool) -> list[Topic]:
        """The live topics whose policies a change may concern. A topic that becomes partitioned, or
        stops being partitioned, changes the policies of the topics named like its partitions."""
        if everywhere:
            return list(self._engine.topics.values())
        namespaces = {row.key for row in change.rows if row.kind is Kind.NAMESPACE}
        names = {row.key for row in change.rows if row.kind in _NAMES_WITH_POLICIES}
        return [
            topic
            for topic in self._engine.topics.values()
            if str(topic.name.namespace) in namespaces
            or topic.name.full in names
            or (topic.partition >= 0 and topic.name.base.full in names)
        ]
