"""The series of ``/metrics`` that the pipeline reads, with the field that each becomes.

Names and labels are those of Pulsar 4.0 and 4.1. A Headgate also writes ``headgate_*``, from which
the exact account is read. Other series are ignored.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final


class Scope(enum.Enum):
    """Kind of subject of a sample, by its labels."""

    BROKER = enum.auto()
    TOPIC = enum.auto()
    SUBSCRIPTION = enum.auto()
    CONSUMER = enum.auto()


@dataclass(frozen=True, slots=True)
class SeriesField:
    """One series: its samples of ``scope`` become the value ``field`` of their subject.

    ``field`` may have names of labels in braces. Values of consumers are added up. The value of the
    label ``text_label`` is stored in ``text_field``.
    """

    scope: Scope
    field: str
    text_label: str = ""
    text_field: str = ""


STATE_FIELD: Final = "state:{state}:{dimension}:{consumer}"
"""Field for the seconds of one cell of Headgate's account."""

_TOPIC: Final = {
    "pulsar_in_messages_total": "msgs_in",
    "pulsar_in_bytes_total": "bytes_in",
    "pulsar_rate_in": "rate_in",
    "pulsar_storage_write_rate": "entry_rate_in",
    "pulsar_storage_logical_size": "storage_bytes",
    "pulsar_storage_backlog_size": "backlog_bytes",
    "pulsar_storage_backlog_age_seconds": "age_s",
    "pulsar_storage_backlog_quota_limit": "quota_size",
    "pulsar_storage_backlog_quota_limit_time": "quota_time_s",
    "pulsar_storage_backlog_quota_exceeded_evictions_total": "eviction_{quota_type}_acts",
    "pulsar_producers_count": "producers",
    "headgate_backlog_evicted_messages_total": "eviction_{quota_type}_messages",
    "headgate_backlog_evicted_bytes_total": "eviction_{quota_type}_bytes",
    "headgate_publish_parked_seconds_total": "parked_{cause}_s",
    "headgate_publish_parked_messages": "parked_{cause}_messages",
    "headgate_publish_parked_bytes": "parked_{cause}_bytes",
}
_SUBSCRIPTION: Final = {
    "pulsar_subscription_back_log": "backlog",
    "pulsar_subscription_delayed": "delayed",
    "pulsar_subscription_unacked_messages": "unacked",
    "pulsar_subscription_blocked_on_unacked_messages": "blocked",
    "pulsar_subscription_consumers_count": "consumers",
    "pulsar_out_messages_total": "msgs_out",
    "pulsar_out_bytes_total": "bytes_out",
    "pulsar_subscription_total_msg_expired": "expired",
    "pulsar_subscription_msg_ack_rate": "ack_rate",
    "pulsar_subscription_msg_rate_redeliver": "redeliver_rate",
    "pulsar_subscription_last_acked_timestamp": "acked_ms",
    "pulsar_subscription_last_mark_delete_advanced_timestamp": "mark_delete_ms",
    "pulsar_subscription_storage_backlog_age_seconds": "age_s",
    "pulsar_subscription_dispatch_throttled_msg_events": "throttled_{reason}_messages_events",
    "pulsar_subscription_dispatch_throttled_bytes_events": "throttled_{reason}_bytes_events",
    "headgate_subscription_state_seconds_total": STATE_FIELD,
}
_CONSUMER: Final = {
    "pulsar_consumer_available_permits": "permits",
    "pulsar_consumer_blocked_on_unacked_messages": "blocked_consumers",
}
_LIMIT: Final = "headgate_effective_limit"

SERIES: Final[dict[tuple[str, Scope], SeriesField]] = {
    ("process_start_time_seconds", Scope.BROKER): SeriesField(Scope.BROKER, "started_s"),
    **{(name, Scope.TOPIC): SeriesField(Scope.TOPIC, field) for name, field in _TOPIC.items()},
    **{
        (name, Scope.SUBSCRIPTION): SeriesField(Scope.SUBSCRIPTION, field)
        for name, field in _SUBSCRIPTION.items()
    },
    **{
        (name, Scope.CONSUMER): SeriesField(Scope.CONSUMER, field)
        for name, field in _CONSUMER.items()
    },
    **{
        (_LIMIT, scope): SeriesField(
            scope, "limit_{limiter}_{dimension}", "source", "limit_{limiter}_source"
        )
        for scope in (Scope.BROKER, Scope.TOPIC, Scope.SUBSCRIPTION)
    },
}
"""By name and scope: a name may have samples of several (``pulsar_out_messages_total`` also of
consumers), and only those of the scope that stands here are read."""

NAMES: Final = frozenset(name for name, _ in SERIES)
"""All names that are read."""
