"""The inputs of the adaptive laws, from the broker's settings and the engine's topics."""

from __future__ import annotations

from headgate.base.park_cause import ParkCause
from headgate.base.units import NS_PER_MS
from headgate.engine.topic import Topic
from headgate.flow.adaptive.cycle import AdaptiveSettings, Law, TopicSignals
from headgate.flow.quota.backlog_quota import Quota
from headgate.policy.settings import Settings


def adaptive_settings(settings: Settings) -> AdaptiveSettings:
    """The controller's part of the broker's settings."""
    return AdaptiveSettings(
        observe_only=settings.adaptivePublisherThrottlingObserveOnly,
        interval_ns=settings.adaptivePublisherThrottlingIntervalMs * NS_PER_MS,
        memory_low=settings.adaptivePublisherThrottlingMemoryLowWatermarkPct,
        memory_high=settings.adaptivePublisherThrottlingMemoryHighWatermarkPct,
        backlog_low=settings.adaptivePublisherThrottlingBacklogLowWatermarkPct,
        backlog_high=settings.adaptivePublisherThrottlingBacklogHighWatermarkPct,
        min_rate_factor=settings.adaptivePublisherThrottlingMinRateFactor,
        max_rate_change_factor=settings.adaptivePublisherThrottlingMaxRateChangeFactor,
        law=Law(settings.adaptivePublisherThrottlingLaw),
        drain_set_point=settings.adaptivePublisherThrottlingDrainSetPointPct,
        drain_horizon_ns=settings.adaptivePublisherThrottlingDrainHorizonMs * NS_PER_MS,
    )


def topic_signals(
    topic: Topic, messages: int, size_bytes: int, waited_for: set[ParkCause]
) -> TopicSignals:
    """The signals of one topic. A quota that evicts never stops producers, so the controller does
    not slow them for it (D11 in docs/guide/adaptive-laws.md)."""
    quota = topic.quota
    size = time = None
    backlog_bytes = done_bytes = 0
    age_ms = -1
    if quota is not None:
        size, time = stopping_quota(quota.quotas.size), stopping_quota(quota.quotas.time)
        slowest = quota.slowest()
        done_bytes = topic.publishing.staged_bytes if slowest is None else slowest.done_bytes
        backlog_bytes = topic.publishing.staged_bytes - done_bytes
        age_ms = quota.age_ms()
    return TopicSignals(
        messages=messages,
        bytes=size_bytes,
        was_parked=bool(waited_for),
        was_slowed=ParkCause.ADAPTIVE in waited_for,
        backlog_bytes=backlog_bytes,
        size_limit=None if size is None else size.limit,
        age_ms=age_ms,
        age_limit_ms=None if time is None else time.limit,
        done_bytes=done_bytes,
    )


def stopping_quota(quota: Quota | None) -> Quota | None:
    """The quota if it stops producers, else None."""
    return quota if quota is not None and quota.policy.stops_producers else None
