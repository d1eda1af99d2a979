"""Applies changed settings and policies to the engine and its live topics.

The engine asks for the limits and quotas of a topic when it loads the topic. When a policy or a
dynamic setting changes, this module makes the engine ask again for each topic that the change may
concern: at once if these are few, otherwise in slices.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping
from functools import partial

from headgate.base.stored_total import STORED_BYTES_MAX
from headgate.base.units import MIB, NS_PER_MS
from headgate.broker.policy_rollout import PolicyKinds, PolicyRollout
from headgate.broker.rights_rollout import RightsRollout
from headgate.engine.engine import Engine
from headgate.engine.engine_limits import EngineLimits
from headgate.engine.topic import Topic
from headgate.metadata.catalog import Catalog, Change
from headgate.metadata.policies import NamespacePolicies
from headgate.metadata.rows import Kind, NamespaceRow
from headgate.policy.dynamic_settings import DynamicSettings
from headgate.policy.resolver import PolicyResolver
from headgate.policy.settings import Settings

logger = logging.getLogger("headgate.broker")

_OF_ALL = ""
"""The scope of a change of a setting."""

_TOPIC_KINDS = frozenset((Kind.TOPIC_POLICIES, Kind.PARTITIONED))
_FIELDS_OF_KIND = {
    frozenset({"dispatch_rate", "subscription_dispatch_rate"}): PolicyKinds.DISPATCH,
    frozenset({"publish_rate"}): PolicyKinds.PUBLISH,
}
_KINDS_OF_POLICIES = _TOPIC_KINDS | {Kind.SETTING, Kind.NAMESPACE}


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
        deduplicated_producers_max=settings.brokerDeduplicationMaxNumberOfProducers,
        failover_hashes_partitions=settings.activeConsumerFailoverConsistentHashing,
    )


def _tenant_storage_bytes_max(settings: Settings) -> int:
    size_mb = settings.headgateMaxStoragePerTenantMB
    return size_mb * MIB if size_mb > 0 else STORED_BYTES_MAX


class PolicyUpdates:
    """Applies changes of the metadata that are durable."""

    def __init__(
        self,
        engine: Engine,
        catalog: Catalog,
        settings: Settings,
        dynamic: DynamicSettings,
        policies: PolicyResolver,
        rollout: PolicyRollout,
        rights: RightsRollout,
    ) -> None:
        self._engine = engine
        self._catalog = catalog
        self._settings = settings
        self._dynamic = dynamic
        self._policies = policies
        self._rollout = rollout
        self._rights = rights

    def use_stored_settings(self) -> None:
        """Apply the stored dynamic settings to the engine."""
        self._dynamic.use(self._catalog.settings())
        engine, settings = self._engine, self._settings
        engine.limits.parked_bytes_per_connection_max = settings.headgateMaxParkedBytesPerConnection
        hold_park_ns = settings.headgateHoldParkMs * NS_PER_MS
        if hold_park_ns != engine.limits.hold_park_ns:
            engine.limits.hold_park_ns = hold_park_ns
            engine.parked.recheck_hold_timeouts()
        engine.parked.bounds_changed()
        engine.tenant_storage.set_max(_tenant_storage_bytes_max(settings))
        engine.delays.memory_bytes_max = settings.headgateDelayedIndexMemoryMB * MIB
        engine.admission.recheck_pending_limits()
        engine.throttle_counts_entries = settings.dispatchThrottlingOnBatchMessageEnabled
        engine.throttle_spares_caught_up = (
            not settings.dispatchThrottlingOnNonBacklogConsumerEnabled
        )

    def set_broker_limits(self) -> None:
        """Apply the dispatch limit and the publish limit of the whole broker, if they changed.

        Live topics follow a limit of another kind when their policies are applied next, which each
        change of a setting does (:meth:`apply_policies`).
        """
        limit = self._policies.dispatch_limits.of_broker().limit
        if limit != self._engine.broker_limit or (limit is not None and limit.relative):
            # The amount of a relative limit also depends on whether a batch counts as one message.
            self._engine.set_broker_limit(limit)
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
        """Apply the limits and quotas of a durable change to the live topics that it concerns:
        at once if these are few; and its permissions to the producers and consumers of its topics.
        :meth:`when_in_force` waits for the others."""
        self._rights.apply(change)
        kinds = {row.kind for row in change.rows}
        if Kind.SETTING in kinds:
            self._rollout.apply(_OF_ALL, lambda: _AllTopics(self._engine))
        elif kinds & _KINDS_OF_POLICIES:
            self._apply_to_scopes(change)

    def _apply_to_scopes(self, change: Change) -> None:
        """Apply a change to the topics of each namespace and each name in it. A topic that becomes
        partitioned, or stops being partitioned, changes the policies of the topics named like its
        partitions."""
        engine, apply = self._engine, self._rollout.apply
        for row in change.rows:
            if row.kind is Kind.NAMESPACE:
                members = partial(_members, engine.by_namespace, row.key)
                apply(row.key, members, _kinds_of(row.before, row.after))
                if row.after is None:
                    engine.quotas.forget_namespace(row.key)
            elif row.kind in _TOPIC_KINDS:
                apply(row.key, partial(_members, engine.by_base, row.key))
                topic = engine.topics.get(row.key)
                if topic is not None:
                    apply(row.key, partial(tuple, (topic,)))

    async def when_in_force(self, change: Change) -> None:
        """Return when ``change``, which was applied, is in force on all live topics."""
        of_all = {_OF_ALL for row in change.rows if row.kind is Kind.SETTING}
        scopes = {row.key for row in change.rows if row.kind in _KINDS_OF_POLICIES}
        await self._rollout.when_in_force(of_all or scopes)
        await self._rights.when_in_force(change)


def _kinds_of(before: object, after: object) -> PolicyKinds:
    """What a change of a namespace's policies concerns."""
    if not isinstance(before, NamespaceRow) or not isinstance(after, NamespaceRow):
        return PolicyKinds.ALL
    changed = {
        name
        for name in NamespacePolicies.__struct_fields__
        if getattr(before.policies, name) != getattr(after.policies, name)
    }
    for names, kinds in _FIELDS_OF_KIND.items():
        if changed <= names:
            return kinds
    return PolicyKinds.ALL


class _AllTopics(Collection[Topic]):
    """The loaded topics of an engine."""

    def __init__(self, engine: Engine) -> None:
        self._topics = engine.topics

    def __len__(self) -> int:
        return len(self._topics)

    def __iter__(self) -> Iterator[Topic]:
        return iter(self._topics.values())

    def __contains__(self, topic: object) -> bool:
        return isinstance(topic, Topic)


def _members(groups: Mapping[str, Mapping[Topic, None]], key: str) -> Collection[Topic]:
    return groups.get(key, {}).keys()
