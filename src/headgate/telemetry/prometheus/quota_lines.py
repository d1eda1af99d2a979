"""Samples of backlog quotas on ``GET /metrics`` (PIP-323, and Headgate's own)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from headgate.base.park_cause import ParkCause
from headgate.base.units import MS_PER_S, NS_PER_S
from headgate.broker.sweeps.quota_sweep import BOUNDS_S
from headgate.flow.quota.backlog_quota import QuotaType
from headgate.telemetry.prometheus.series.definition import LinesOf, Series
from headgate.telemetry.prometheus.series.quotas import (
    BREACH_SERIES,
    CHECK_DEFECTS_SERIES,
    CHECK_DURATION_SERIES,
    EVICTED_BYTES_SERIES,
    EVICTED_MESSAGES_SERIES,
    EVICTIONS_OF_BROKER_SERIES,
    EVICTIONS_SERIES,
    PRODUCERS_CLOSED_SERIES,
    PRODUCERS_HELD_SERIES,
    PRODUCERS_REFUSED_SERIES,
    QUOTA_SIZE_SERIES,
    QUOTA_TIME_SERIES,
    STOPPED_SECONDS_SERIES,
)

if TYPE_CHECKING:
    from headgate.broker.sweeps.quota_sweep import CheckDurations
    from headgate.engine.quota_scheduler import QuotaScheduler
    from headgate.engine.topic import Topic
    from headgate.engine.topic_quota import TopicQuota
    from headgate.flow.quota.backlog_quota import Quotas

QUOTA_TYPES: Final = tuple(f',quota_type="{kind.label}"}} ' for kind in QuotaType)
"""The end of a sample's labels, for each type of quota."""


class QuotaLines:
    """Adds the samples of quotas to one page."""

    def __init__(self, quotas: Callable[[Topic], Quotas], lines_of: LinesOf) -> None:
        """``quotas`` gives the quotas of a topic."""
        self._quotas = quotas
        self._lines_of = lines_of

    def add_topic(self, topic: Topic, labels: str) -> None:
        """Add the samples of one topic. ``labels`` name it and are still open."""
        quotas = self._quotas(topic)
        limit_bytes = -1 if quotas.size is None else quotas.size.limit
        limit_s = -1 if quotas.time is None else quotas.time.limit // MS_PER_S
        self._add(QUOTA_SIZE_SERIES, labels, "} ", limit_bytes)
        self._add(QUOTA_TIME_SERIES, labels, "} ", limit_s)
        quota = topic.quota
        for kind, end in zip(QuotaType, QUOTA_TYPES, strict=True):
            acts, messages, size = (0, 0, 0) if quota is None else quota.evictions(kind)
            self._add(EVICTIONS_SERIES, labels, end, acts)
            if quota is None:
                continue
            self._add(EVICTED_MESSAGES_SERIES, labels, end, messages)
            self._add(EVICTED_BYTES_SERIES, labels, end, size)
            seconds = quota.seconds_to_breach(kind)
            if seconds is not None:
                self._add(BREACH_SERIES, labels, end, f"{seconds:.3f}")
        if quota is not None:
            parking = topic.publishing.parking
            held = 0 if parking is None else parking.waiting(ParkCause.BACKLOG_QUOTA).producers
            self._add(PRODUCERS_HELD_SERIES, labels, "} ", held)
            self._stops(quota, labels)

    def _stops(self, quota: TopicQuota, labels: str) -> None:
        stops, now_ns = quota.stops, quota.topic.now_ns
        for kind, end in zip(QuotaType, QUOTA_TYPES, strict=True):
            stopped_ns = 0 if stops is None else stops.stopped_ns(kind, now_ns)
            self._add(STOPPED_SECONDS_SERIES, labels, end, f"{stopped_ns / NS_PER_S:.3f}")
        self._add(PRODUCERS_CLOSED_SERIES, labels, "} ", 0 if stops is None else stops.closed_count)
        self._add(
            PRODUCERS_REFUSED_SERIES, labels, "} ", 0 if stops is None else stops.refused_count
        )

    def add_broker(self, labels: str, keeper: QuotaScheduler, durations: CheckDurations) -> None:
        """Add the samples of the whole broker; ``labels`` name the cluster and are still open.

        ``durations`` are those of the periodic check.
        """
        for (acts, _, _), end in zip(keeper.evicted, QUOTA_TYPES, strict=True):
            self._add(EVICTIONS_OF_BROKER_SERIES, labels, end, acts)
        self._add(CHECK_DEFECTS_SERIES, labels, "} ", keeper.defects_count)
        lines, name = self._lines_of(CHECK_DURATION_SERIES), CHECK_DURATION_SERIES.name
        bounds = [*(str(bound_s) for bound_s in BOUNDS_S), "+Inf"]
        for bound, count in zip(bounds, accumulate(durations.counts), strict=True):
            lines.append(f'{name}_bucket{labels},le="{bound}"}} {count}')
        lines.append(f"{name}_count{labels}}} {sum(durations.counts)}")
        lines.append(f"{name}_sum{labels}}} {durations.sum_ns / NS_PER_S:.6f}")

    def _add(self, series: Series, labels: str, end: str, value: int | str) -> None:
        self._lines_of(series).append(f"{series.name}{labels}{end}{value}")
