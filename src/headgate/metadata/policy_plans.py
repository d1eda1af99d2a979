"""Changes of the policies of namespaces and topics, validated and staged."""

from __future__ import annotations

from typing import Final, cast

import msgspec

from headgate.base.names import NamespaceName, TopicName
from headgate.metadata.checks import (
    NAMESPACE_QUOTA_TOO_LARGE,
    NAMESPACE_RETENTION_TOO_SMALL,
    TOPIC_QUOTA_TOO_LARGE,
    TOPIC_RETENTION_TOO_SMALL,
    check_counts,
    check_quotas_fit,
    check_retention,
)
from headgate.metadata.errors import not_allowed, not_found
from headgate.metadata.expiry_checks import (
    NAMESPACE_TTL_REFUSED,
    TOPIC_TTL_REFUSED,
    check_expiry,
)
from headgate.metadata.policies import (
    COUNT_NAMES,
    NO_TOPIC_POLICIES,
    TOPIC_COUNT_NAMES,
    BacklogQuota,
    DispatchRate,
    QuotaKind,
    Retention,
    TopicPolicies,
    retention_policy,
    with_quota,
)
from headgate.metadata.rows import Kind
from headgate.metadata.staged_rows import own_name, staged_namespace, topic_exists
from headgate.metadata.state import Change, RowState

SUBSCRIPTION_RATES_MAX: Final = 1_000
"""Most subscriptions of a topic with dispatch rates of their own. A change of one writes all."""


class PolicyPlans:
    """Plans changes of policies."""

    def __init__(self, state: RowState) -> None:
        self._state = state

    def plan_namespace_policies(self, name: NamespaceName, **policies: object) -> Change:
        """Set some fields of :class:`NamespacePolicies` (``None`` removes one), leave the others.

        Raises:
            RefusalError: 404 without the namespace, 400 for a retention that is not allowed, 412
                for one that does not cover the backlog quotas, or a number below 0; as
                :func:`check_expiry`.
        """
        row = staged_namespace(self._state, name)
        check_counts(policies, COUNT_NAMES)
        check_expiry(policies, NAMESPACE_TTL_REFUSED)
        replaced = msgspec.structs.replace(row.policies, **policies)
        check_retention(replaced.retention)
        for field, refusal in (
            ("backlog_quotas", NAMESPACE_QUOTA_TOO_LARGE),
            ("retention", NAMESPACE_RETENTION_TOO_SMALL),
        ):
            if field in policies:
                check_quotas_fit(replaced.backlog_quotas, replaced.retention, refusal)
        return self._state.stage(
            [(Kind.NAMESPACE, str(name), msgspec.structs.replace(row, policies=replaced))]
        )

    def plan_namespace_quota(
        self, name: NamespaceName, kind: QuotaKind, quota: BacklogQuota | None
    ) -> Change:
        """Set or remove (``None``) the backlog quota of one type.

        Raises:
            RefusalError: 404 without the namespace, 412 if its retention does not cover it.
        """
        present = staged_namespace(self._state, name).policies.backlog_quotas
        return self.plan_namespace_policies(name, backlog_quotas=with_quota(present, kind, quota))

    def plan_topic_policies(self, topic: TopicName, **policies: object) -> Change:
        """Set some fields of :class:`TopicPolicies` (``None`` removes one), leave the others.

        Raises:
            RefusalError: 412 for a partition, a number below 0, or a retention that does not cover
                the backlog quotas of topic and namespace; 404 without the topic, 400 for a bad
                retention.
        """
        replaced = msgspec.structs.replace(self._staged_policies(topic), **policies)
        check_counts(policies, TOPIC_COUNT_NAMES)
        check_expiry(policies, TOPIC_TTL_REFUSED)
        check_retention(replaced.retention)
        if "retention" in policies:
            namespace = staged_namespace(self._state, topic.namespace).policies
            quotas = {**namespace.backlog_quotas, **replaced.backlog_quotas}
            check_quotas_fit(quotas, replaced.retention, TOPIC_RETENTION_TOO_SMALL)
        row = None if replaced == NO_TOPIC_POLICIES else replaced
        return self._state.stage([(Kind.TOPIC_POLICIES, topic.full, row)])

    def plan_remove_topic_policies(self, topic: TopicName) -> Change:
        """Remove all policies of a topic.

        Raises:
            RefusalError: 412 for a partition, 404 without the topic.
        """
        self._staged_policies(topic)
        return self._state.stage([(Kind.TOPIC_POLICIES, topic.full, None)])

    def plan_topic_quota(
        self,
        topic: TopicName,
        kind: QuotaKind,
        quota: BacklogQuota | None,
        *,
        broker_retention: Retention,
    ) -> Change:
        """Set or remove (``None``) the backlog quota of one type.

        It is compared with the retention that is in force: the topic's, else the namespace's,
        else ``broker_retention``.

        Raises:
            RefusalError: 412 for a partition or a quota that the retention does not cover, 404
                without the topic.
        """
        present = self._staged_policies(topic)
        if quota is not None:
            policy = retention_policy(
                present, staged_namespace(self._state, topic.namespace).policies
            )
            check_quotas_fit({kind: quota}, policy or broker_retention, TOPIC_QUOTA_TOO_LARGE)
        quotas = with_quota(present.backlog_quotas, kind, quota)
        return self.plan_topic_policies(topic, backlog_quotas=quotas)

    def plan_subscription_rate(
        self, topic: TopicName, subscription: str, rate: DispatchRate | None
    ) -> Change:
        """Set or remove the dispatch rate of one subscription (which need not exist yet).

        Raises:
            RefusalError: as :meth:`plan_topic_policies`; 412 if there are too many.
        """
        rates = dict(self._staged_policies(topic).dispatch_rate_by_subscription)
        is_new = rates.pop(subscription, None) is None
        if rate is not None:
            rates[subscription] = rate
            if is_new and len(rates) > SUBSCRIPTION_RATES_MAX:
                raise not_allowed(
                    f"{SUBSCRIPTION_RATES_MAX} subscriptions of topic {topic} have dispatch rates "
                    "of their own: more are not allowed"
                )
        return self.plan_topic_policies(topic, dispatch_rate_by_subscription=rates)

    def _staged_policies(self, topic: TopicName) -> TopicPolicies:
        """The staged policies of a topic that is not a partition.

        Raises:
            RefusalError: 412 for a partition, 404 without the topic.
        """
        if own_name(topic, self._state.staged) != topic.full:
            raise not_allowed("Not allowed to set/get topic policy for a partition")
        if not topic_exists(self._state, topic.full):
            raise not_found(f"Topic {topic} not found")
        present = cast(TopicPolicies | None, self._state.staged(Kind.TOPIC_POLICIES, topic.full))
        return present or NO_TOPIC_POLICIES
