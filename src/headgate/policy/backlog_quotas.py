"""Which backlog quotas are in force on a topic and where they are set (law 4).

Enforcement, REST's ``applied=true``, stats, /metrics, telemetry and explain all ask here.
"""

from __future__ import annotations

from collections.abc import Mapping

from headgate.base.names import TopicName
from headgate.base.units import GIB
from headgate.engine.topic import Topic
from headgate.flow.quota.backlog_quota import (
    NO_QUOTAS,
    QuotaPolicy,
    Quotas,
    QuotaSetting,
    QuotaType,
    SetQuota,
    effective_quota,
)
from headgate.metadata.catalog import Catalog
from headgate.metadata.policies import QUOTA_KINDS, BacklogQuota, QuotaKind
from headgate.policy.settings import Settings

SHARED_MAX = 4_096
"""Different quotas that are remembered, so that topics with the same ones share them."""

NOT_LIMITED: Mapping[QuotaKind, BacklogQuota] = {
    kind: BacklogQuota("producer_request_hold") for kind in QUOTA_KINDS
}
"""What REST shows where there is no quota at all."""

_KINDS: Mapping[QuotaType, QuotaKind] = {
    QuotaType.SIZE: "destination_storage",
    QuotaType.TIME: "message_age",
}


class QuotaTable:
    """Backlog quotas of one broker's topics, as they are set."""

    def __init__(self, catalog: Catalog, settings: Settings) -> None:
        self._catalog = catalog
        self._settings = settings
        self._shared: dict[Quotas, Quotas] = {}

    def of_topic(self, topic: TopicName) -> Quotas:
        """The quotas in force on one topic (on each partition by itself)."""
        found = Quotas(*(self.setting_of(topic, kind).quota for kind in QuotaType))
        if len(self._shared) >= SHARED_MAX:
            self._shared.clear()
        return self._shared.setdefault(found, found)

    def of_live(self, topic: Topic) -> Quotas:
        """The same of a live topic: what is enforced on it, or would be if quotas were."""
        if topic.is_system:
            return NO_QUOTAS
        if not self._settings.backlogQuotaCheckEnabled:
            return self.of_topic(topic.name)
        return NO_QUOTAS if topic.quota is None else topic.quota.quotas

    def setting_of(self, topic: TopicName, kind: QuotaType) -> SetQuota:
        """Which setting decides about one type of quota."""
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

    def applied(self, topic: TopicName) -> dict[QuotaKind, BacklogQuota]:
        """Both types as REST shows what is enforced, wherever that is set."""
        shown: dict[QuotaKind, BacklogQuota] = {}
        for kind in QuotaType:
            found = self.setting_of(topic, kind)
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
            # A part of a byte is not "nobody may publish", which 0 would be.
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
