"""The effective limits, quotas and retention of a topic: those of its most specific policies.

REST (``applied=true``), the engine, stats, /metrics, telemetry and explain all ask the resolver.
The most specific policy that is set wins as a whole (law 1.8). What the gates enforce may differ
from second to second: see :mod:`~headgate.policy.current_limits`. The tables alone know which
topics are the broker's own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from headgate.base.names import TopicName
from headgate.engine.engine_limits import UnackedLimits
from headgate.engine.send_rules import SendRules
from headgate.engine.topic import Topic
from headgate.flow.limits.rate_limit import RateLimit
from headgate.flow.quota.backlog_quota import NO_QUOTAS, Quotas
from headgate.metadata.catalog import Catalog
from headgate.metadata.policies import (
    BacklogQuota,
    CountField,
    DispatchRate,
    PublishRate,
    QuotaKind,
    Retention,
)
from headgate.policy.count_table import CountTable
from headgate.policy.deduplication_table import DeduplicationTable
from headgate.policy.expiry_table import ExpiryTable
from headgate.policy.limit_table import DISPATCH, PUBLISH, LimitTable
from headgate.policy.quota_table import QuotaTable
from headgate.policy.rate_policies import dispatch_rate, publish_rate
from headgate.policy.retention_table import RetentionTable
from headgate.policy.schema_table import SchemaTable
from headgate.policy.send_rules_table import SendRulesTable
from headgate.policy.settings import Settings
from headgate.policy.use_table import UseTable


class PolicyResolver:
    """The limits, quotas and retention of one broker's topics. System topics have only a retention.

    A method with a :class:`TopicName` answers REST, one with a loaded :class:`Topic` answers the
    engine.
    """

    def __init__(
        self, catalog: Catalog, settings: Settings, system_topics: Collection[str] = ()
    ) -> None:
        """``system_topics`` are full names."""
        self._settings = settings
        system = frozenset(system_topics)
        self.dispatch_limits = LimitTable(catalog, settings, DISPATCH, system)
        self.publish_limits = LimitTable(catalog, settings, PUBLISH, system)
        self.quotas = QuotaTable(catalog, settings, system)
        self.retentions = RetentionTable(catalog, settings, system)
        self.counts = CountTable(catalog, settings, system)
        self.schemas = SchemaTable(catalog, settings)
        self.deduplication = DeduplicationTable(catalog, settings, system)
        self.expiry = ExpiryTable(catalog, settings, system)
        self.uses = UseTable(catalog, settings, system)
        self.send_rules = SendRulesTable(catalog, settings, system)

    # -- what REST shows -------------------------------------------------------------------

    def applied_dispatch_rate(self, topic: TopicName) -> DispatchRate:
        """The effective dispatch rate of a topic, as it is stored; rates of 0 for none."""
        return dispatch_rate(self.dispatch_limits.of_topic(topic).policy)

    def applied_subscription_rate(self, topic: TopicName, subscription: str) -> DispatchRate:
        """The effective dispatch rate of a subscription, as it is stored; rates of 0 for none."""
        return dispatch_rate(self.dispatch_limits.of_subscription(topic, subscription).policy)

    def applied_publish_rate(self, topic: TopicName) -> PublishRate | None:
        """The effective publish rate of a topic, as it is stored."""
        return publish_rate(self.publish_limits.of_topic(topic).policy)

    def applied_quotas(self, topic: TopicName) -> Mapping[QuotaKind, BacklogQuota]:
        """The effective backlog quotas of a topic, both types, as they are stored."""
        return self.quotas.applied(topic)

    def applied_retention(self, topic: TopicName) -> Retention:
        """The effective retention of a topic; trimming uses it too."""
        return self.retentions.of_topic(topic)

    def applied_deduplication(self, topic: TopicName) -> bool:
        """Whether a topic has message deduplication."""
        return self.deduplication.of_topic(topic)

    def applied_count(self, topic: TopicName, field: CountField) -> int:
        """The effective limit on a number of a topic; 0 for none. The broker applies the same."""
        return self.counts.of_topic(topic, field)

    def applied_message_ttl(self, topic: TopicName) -> int:
        """The effective TTL of a topic's messages in seconds; 0 for none."""
        ttl = self.expiry.message_ttl(topic)
        return 0 if ttl is None else ttl.ttl_s

    # -- what the engine applies -----------------------------------------------------------

    def applied_dispatch_limit(self, topic: Topic, subscription: str | None) -> RateLimit | None:
        """The effective dispatch limit of one subscription, or (None) of the topic itself."""
        if subscription is None:
            return self.dispatch_limits.of_topic(topic.name).limit
        return self.dispatch_limits.of_subscription(topic.name, subscription).limit

    def applied_publish_limit(self, topic: Topic) -> RateLimit | None:
        """The effective publish limit of a topic."""
        return self.publish_limits.of_topic(topic.name).limit

    def deduplicates(self, topic: Topic) -> bool:
        """Whether the engine drops messages of a topic that were stored before."""
        return self.deduplication.of_topic(topic.name)

    def unacked_limits(self, topic: Topic) -> UnackedLimits | None:
        """The limits on the unacknowledged messages of a topic's shared consumers and
        subscriptions; None: those of the settings."""
        if topic.is_system:
            return None
        return UnackedLimits(
            self.counts.of_topic(topic.name, "max_unacked_messages_per_consumer"),
            self.counts.of_topic(topic.name, "max_unacked_messages_per_subscription"),
        )

    def applied_send_rules(self, topic: Topic) -> SendRules | None:
        """The rules for the SENDs of a topic."""
        return self.send_rules.of_topic(topic.name)

    def enforced_quotas(self, topic: Topic) -> Quotas:
        """The backlog quotas that the engine enforces on a topic."""
        if not self._settings.backlogQuotaCheckEnabled:
            return NO_QUOTAS
        return self.quotas.of_topic(topic.name)

    def shown_quotas(self, topic: Topic) -> Quotas:
        """The backlog quotas that stats and metrics show of a topic: those that the engine
        enforces, or that it would enforce if ``backlogQuotaCheckEnabled`` were true."""
        if not self._settings.backlogQuotaCheckEnabled:
            return self.quotas.of_topic(topic.name)
        return NO_QUOTAS if topic.quota is None else topic.quota.quotas
