"""Diagnoses one subscription of the broker, and says it in a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headgate.base.sliced import Sliced
from headgate.base.units import MS_PER_S
from headgate.engine.subscription import Subscription
from headgate.explain.diagnosis import Diagnosis, diagnose
from headgate.flow.expiry import ttl_text
from headgate.flow.limits.rate_limit import Level
from headgate.flow.quota.backlog_quota import QuotaType
from headgate.flow.sentences.backlog import Circumstances
from headgate.flow.sentences.quota import quota_text
from headgate.observe.explain.window import Part
from headgate.policy.current_limits import CurrentDispatchLimits


@dataclass(frozen=True, slots=True)
class SubscriptionDiagnosis:
    """A diagnosis, the partitions that it is about, and its sentence."""

    parts: Sequence[Subscription]
    diagnosis: Diagnosis
    sentence: str


def diagnose_subscription(
    current_limits: CurrentDispatchLimits, parts: Sequence[Part]
) -> Sliced[SubscriptionDiagnosis]:
    """Judge one subscription, given as its partitions' parts (at least one)."""
    subscriptions = [part.subscription for part in parts]
    found = yield from diagnose(
        parts,
        current_limits.limits_of(subscriptions[0]),
        batches_count_as_one=subscriptions[0].topic.batches_count_as_one,
    )
    circumstances = _circumstances(subscriptions, found.level)
    return SubscriptionDiagnosis(subscriptions, found, found.sentence(circumstances))


def _evicted_by(subscriptions: Sequence[Subscription]) -> str:
    """The quota that evicted last, on the partition that lost most."""
    quota = max(subscriptions, key=lambda part: part.evicted_messages).evicted_by
    if quota is None:
        return ""
    scale = 1 if quota.type is QuotaType.SIZE else MS_PER_S
    return quota_text(quota.type.label, quota.limit / scale, quota.source)


def _expired_by(subscriptions: Sequence[Subscription]) -> str:
    """The TTL that expired messages last, on the partition that lost most by age; empty if a
    request did."""
    ttl = max(subscriptions, key=lambda part: part.expired_messages).expired_by
    return "" if ttl is None else ttl_text(ttl)


def _circumstances(subscriptions: Sequence[Subscription], level: Level | None) -> Circumstances:
    """What only the broker knows."""
    consumers = [c for subscription in subscriptions for c in subscription.consumers]
    without_consumer = sum(not subscription.consumers for subscription in subscriptions)
    waiting = 0
    if level is not None:
        # Each partition has its own limit.
        waiting = max(subscription.waiting_subscriptions(level) for subscription in subscriptions)
    return Circumstances(
        waiting_subscriptions=waiting,
        permits=sum(max(0, c.permits) for c in consumers) if consumers else None,
        permits_max=sum(c.window for c in consumers) if consumers else None,
        evicted_by=_evicted_by(subscriptions),
        expired_by=_expired_by(subscriptions),
        partitions_without_consumer=without_consumer if consumers else 0,
        one_at_a_time=subscriptions[0].type.label in ("Exclusive", "Failover"),
    )
