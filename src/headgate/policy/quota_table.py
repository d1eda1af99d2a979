"""The backlog quotas that policies and settings define (law 4)."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from headgate.base.names import TopicName
from headgate.base.units import GIB
from headgate.flow.quota.backlog_quota import (
    NO_QUOTAS,
    EffectiveQuota,
    QuotaPolicy,
    Quotas,
    QuotaSetting,
    QuotaType,
    effective_quota,
)
from headgate.metadata.catalog import Catalog
from headgate.metadata.policies import QUOTA_KINDS, BacklogQuota, QuotaKind
from headgate.policy.settings import Settings

SHARED_MAX = 4_096
"""Distinct quotas that the table caches, so that topics with equal quotas share one object."""

NOT_LIMITED: Mapping[QuotaKind, BacklogQuota] = {
    kind: BacklogQuota("producer_request_hold") for kind in QUOTA_KINDS
}
"""What REST shows for a topic without quotas."""

_KINDS: Mapping[QuotaType, QuotaKind] = {
    QuotaType.SIZE: "destination_storage",
    QuotaType.TIME: "message_age",
}


class QuotaTable:
    """The backlog quotas for each name; a partition has the quotas of its topic."""

    def __init__(
        self, catalog: Catalog, settings: Settings, system_topics: Collection[str] = ()
    ) -> None:
        """``system_topics`` are full names; these topics have no quotas."""
        self._catalog = catalog
        self._settings = settings
        self._system_topics = system_topics
        self._shared: dict[Quotas, Quotas] = {}

    def of_topic(self, topic: TopicName) -> Quotas:
        """The quotas of one topic, or of one partition."""
        if topic.full in self._system_topics:
            return NO_QUOTAS
        found = Quotas(*(self.effective(topic, kind).quota for kind in QuotaType))
        if len(self._shared) >= SHARED_MAX:
            self._shared.clear()
        return self._shared.setdefault(found, found)

    def effective(self, topic: TopicName, kind: QuotaType) -> EffectiveQuota:
        """The effective quota of one type, and the policy or setting that defines it."""
        namespace = self._catalog.namespace_policies(topic.namespace)
        broker, key = self._of_broker(kind)
        return effective_quota(
            kind,
            topic=_setting(self._catalog.topic_policies(topic).backlog_quotas, kind),
            namespace=_setting(namespace.backlog_quotas, kind),
            namespace_name=str(topic.namespace),
            broker=broker,
            broker_key=key,
        )

    def applied(self, topic: TopicName) -> Mapping[QuotaKind, BacklogQuota]:
        """Both types as REST shows them."""
        if topic.full in self._system_topics:
            return NOT_LIMITED
        shown: dict[QuotaKind, BacklogQuota] = {}
        for kind in QuotaType:
            found = self.effective(topic, kind)
            limit = found.setting.limit if found.setting is not None else None
            policy = found.setting.policy if found.setting is not None else QuotaPolicy.HOLD
            quota = {"limit_size" if kind is QuotaType.SIZE else "limit_time": limit}
            shown[_KINDS[kind]] = BacklogQuota(
                policy.value, **{name: value for name, value in quota.items() if value is not None}
            )
        return shown

    def _of_broker(self, kind: QuotaType) -> tuple[QuotaSetting, str]:
        settings = self._settings
        policy = QuotaPolicy(settings.backlogQuotaDefaultRetentionPolicy)
        if kind is QuotaType.TIME:
            limit = settings.backlogQuotaDefaultLimitSecond
            return QuotaSetting(limit, policy), "backlogQuotaDefaultLimitSecond"
        if settings.backlogQuotaDefaultLimitGB > 0:
            # 0 would block all producers; a fraction of a byte does not mean that.
            limit = max(int(settings.backlogQuotaDefaultLimitGB * GIB), 1)
            return QuotaSetting(limit, policy), "backlogQuotaDefaultLimitGB"
        limit = settings.backlogQuotaDefaultLimitBytes
        return QuotaSetting(limit, policy), "backlogQuotaDefaultLimitBytes"


def _setting(quotas: Mapping[QuotaKind, BacklogQuota], kind: QuotaType) -> QuotaSetting | None:
    quota = quotas.get(_KINDS[kind])
    if quota is None:
        return None
    limit = quota.limit_size if kind is QuotaType.SIZE else quota.limit_time
    return QuotaSetting(limit, QuotaPolicy(quota.policy))
