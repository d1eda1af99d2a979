"""The series of namespaces: their own, and those summed over their topics."""

from __future__ import annotations

from typing import Final

from headgate.telemetry.prometheus.series.definition import NAMESPACE_LABELS, Series

NAMESPACE_SERIES: Final = (
    Series(
        "pulsar_topics_count", "gauge", NAMESPACE_LABELS, "topics", "Live topics of the namespace."
    ),
)

SUMMED_TOPIC_NAMES: Final = frozenset(
    f"pulsar_{name}"
    for name in (
        "subscriptions_count",
        "producers_count",
        "consumers_count",
        "rate_in",
        "rate_out",
        "throughput_in",
        "throughput_out",
        "in_messages_total",
        "in_bytes_total",
        "msg_backlog",
        "storage_size",
        "storage_logical_size",
        "storage_backlog_size",
        "storage_write_rate",
        "storage_read_rate",
        "storage_read_cache_misses_rate",
    )
)
"""Of :data:`TOPIC_SERIES`; summed for each namespace where topics have no series of their own. So
are :data:`WRITE_SERIES` and :data:`EVICTIONS_SERIES`."""

SUMMED_SUBSCRIPTION_NAMES: Final = frozenset(
    f"pulsar_{name}" for name in ("out_messages_total", "out_bytes_total", "subscription_in_replay")
)
"""Of :data:`SUBSCRIPTION_SERIES`; summed like these."""
