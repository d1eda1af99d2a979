"""The series of messages that wait before their append."""

from __future__ import annotations

from typing import Final

from headgate.telemetry.prometheus.series.definition import own_topic_series

PARKED_SECONDS_SERIES: Final = own_topic_series(
    "publish_parked_seconds_total",
    "counter",
    "s",
    "Time in which at least one published message waited in the broker, by cause, since the topic"
    " was loaded. The causes are ``topic_rate``, ``broker_rate``, ``adaptive``, ``backlog_quota``,"
    " ``pending_limit``, ``memory`` and ``disk_full``.",
    "cause",
)
PARKED_MESSAGES_SERIES: Final = own_topic_series(
    "publish_parked_messages", "gauge", "messages", "Messages that wait now.", "cause"
)
PARKED_BYTES_SERIES: Final = own_topic_series(
    "publish_parked_bytes", "gauge", "bytes", "Bytes of messages that wait now.", "cause"
)

PARKED_SERIES: Final = (PARKED_SECONDS_SERIES, PARKED_MESSAGES_SERIES, PARKED_BYTES_SERIES)
"""Of topics on which anything ever waited. Without ``exposeTopicLevelMetricsInPrometheus`` waiting
messages are summed for each namespace. Seconds are not: topics wait at the same time, and the sum
would fall with each unloaded topic."""
