"""The series of backlog quotas."""

from __future__ import annotations

from typing import Final

from headgate.telemetry.prometheus.series.definition import (
    BROKER_LABELS,
    Series,
    broker_gauge,
    own_broker_series,
    own_topic_series,
    topic_gauge,
)

EVICTIONS_OF_BROKER_SERIES: Final = broker_gauge(
    "broker_storage_backlog_quota_exceeded_evictions_total",
    "events",
    "Evictions by backlog quotas since the start, by type of quota. It does not fall when a topic"
    " is unloaded (PIP-323).",
    "quota_type",
)
CHECK_DURATION_SERIES: Final = Series(
    "pulsar_storage_backlog_quota_check_duration_seconds",
    "histogram",
    BROKER_LABELS,
    "s",
    "How long the periodic check of all backlog quotas took, once for each check: ``_bucket`` with"
    " ``le``, ``_count`` and ``_sum`` (PIP-323). The bounds below 5 s are Headgate's.",
)
CHECK_DEFECTS_SERIES: Final = own_broker_series(
    "backlog_quota_check_defects_total",
    "counter",
    "topics",
    "Topics whose quota the periodic check found not enforced, and repaired: 0 unless there is a"
    " bug.",
)

QUOTA_SIZE_SERIES: Final = topic_gauge(
    "storage_backlog_quota_limit", "bytes", "Size quota in force; -1 without one."
)
QUOTA_TIME_SERIES: Final = topic_gauge(
    "storage_backlog_quota_limit_time", "s", "Time quota in force; -1 without one."
)
EVICTIONS_SERIES: Final = topic_gauge(
    "storage_backlog_quota_exceeded_evictions_total",
    "events",
    "Evictions by a backlog quota since the topic was loaded, by type of quota. Two samples for"
    " each topic, zeros included (PIP-323).",
    "quota_type",
)
EVICTED_MESSAGES_SERIES: Final = own_topic_series(
    "backlog_evicted_messages_total",
    "counter",
    "messages",
    "Messages that a backlog quota evicted, summed over subscriptions, since the topic was loaded.",
    "quota_type",
)
EVICTED_BYTES_SERIES: Final = own_topic_series(
    "backlog_evicted_bytes_total",
    "counter",
    "bytes",
    "Bytes that a backlog quota evicted, summed over subscriptions, since the topic was loaded.",
    "quota_type",
)
BREACH_SERIES: Final = own_topic_series(
    "backlog_quota_seconds_to_breach",
    "gauge",
    "s",
    "Time until the quota is reached at the smoothed present rate of growth; 0 while it is"
    " reached, no sample if it will not be within a day.",
    "quota_type",
)
PRODUCERS_HELD_SERIES: Final = own_topic_series(
    "backlog_quota_producers_held",
    "gauge",
    "producers",
    "Connected producers whose messages wait for room in a backlog quota.",
)
STOPPED_SECONDS_SERIES: Final = own_topic_series(
    "backlog_quota_stopped_seconds_total",
    "counter",
    "s",
    "Time in which the quota held or refused producers, since the topic was loaded. Producers that"
    " were disconnected meanwhile count.",
    "quota_type",
)
PRODUCERS_CLOSED_SERIES: Final = own_topic_series(
    "backlog_quota_producers_closed_total",
    "counter",
    "producers",
    "Producers that a quota disconnected, at once or after headgateHoldParkMs, since the topic was"
    " loaded.",
)
PRODUCERS_REFUSED_SERIES: Final = own_topic_series(
    "backlog_quota_producers_refused_total",
    "counter",
    "attempts",
    "Attempts to create a producer that a quota refused, those of reconnecting clients included.",
)
QUOTA_SERIES: Final = (
    QUOTA_SIZE_SERIES,
    QUOTA_TIME_SERIES,
    EVICTIONS_SERIES,
    EVICTED_MESSAGES_SERIES,
    EVICTED_BYTES_SERIES,
    BREACH_SERIES,
    PRODUCERS_HELD_SERIES,
    STOPPED_SECONDS_SERIES,
    PRODUCERS_CLOSED_SERIES,
    PRODUCERS_REFUSED_SERIES,
)
"""With ``exposeTopicLevelMetricsInPrometheus``; Headgate's own only of topics that have, or had, a
quota."""
