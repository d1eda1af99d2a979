"""The tables about backlog quotas: ``quota_usage`` and ``evictions``."""

from __future__ import annotations

from typing import Final

from headgate.pipeline.tables.bronze import HEADER
from headgate.pipeline.tables.columns import (
    DOUBLE,
    LONG,
    PARTITION,
    STRING,
    ColumnType,
    Table,
    TableColumn,
)
from headgate.pipeline.tables.intervals import INTERVALS, TOPIC_COLUMNS
from headgate.record.fields import QUOTA_TYPES


def _quota_columns(quota: str) -> tuple[TableColumn, ...]:
    """What is in force of one type of quota, and how much of it is taken."""
    unit = "bytes" if quota == "size" else "ns"
    taken = "backlog_bytes / size_limit_bytes" if quota == "size" else "oldest age / time_limit_ns"
    most = "backlog_bytes_max" if quota == "size" else "oldest_age_max_ns"
    rest = "" if quota == "size" else ", 0 without backlog"
    return (
        TableColumn(
            f"{quota}_limit_{unit}",
            LONG,
            f"Limit of the {quota} quota at the minute's end; null when there is none. [{unit}]",
        ),
        TableColumn(f"{quota}_policy", STRING, "What happens at that limit, by Pulsar's name."),
        TableColumn(
            f"{quota}_source", STRING, "Where that limit is set: topic, namespace or broker."
        ),
        TableColumn(
            f"{quota}_use",
            DOUBLE,
            f"{taken} at the minute's end{rest}; 1 is full; null without a limit above 0.",
        ),
        TableColumn(
            f"{quota}_use_max",
            DOUBLE,
            f"{most} / {quota}_limit_{unit}: the most in the minute, of the limit at its end.",
        ),
    )


THEIL_SEN_METHOD: Final = "theil_sen"
BROKER_METHOD: Final = "broker"
NO_METHOD: Final = "none"
"""Values of ``method``: forecast from the hour before, told by the broker itself from the rate that
it smooths, or not approached."""

EVICTION_FIELDS: Final = tuple(
    f"eviction_{quota}_{amount}"
    for quota in QUOTA_TYPES
    for amount in ("acts", "messages", "bytes")
)
"""What quotas evicted, in the record's topic rows and in tables."""

QUOTA_USAGE: Final = Table(
    "quota_usage",
    (
        *PARTITION,
        TableColumn("minute", ColumnType.TIMESTAMP, "Start of the minute."),
        *TOPIC_COLUMNS,
        TableColumn("broker", STRING, "Broker that wrote the minute's last row."),
        TableColumn("completeness", DOUBLE, "How much of the minute was sampled, 0 to 1."),
        TableColumn(
            "to_ns", LONG, "End of the minute, or of what is known of it: levels are those then."
        ),
        TableColumn(
            "backlog_bytes", LONG, "Backlog of the slowest subscription at the minute's end."
        ),
        TableColumn("backlog_bytes_max", LONG, "Largest backlog_bytes in the minute."),
        TableColumn("oldest_age_ns", LONG, "Age of the oldest message then; null without backlog."),
        TableColumn("oldest_age_max_ns", LONG, "Largest oldest_age_ns in the minute."),
        TableColumn("oldest_subscription", STRING, "The subscription that message belongs to."),
        *_quota_columns("size"),
        *_quota_columns("time"),
        TableColumn(
            "seconds_to_breach_earliest",
            DOUBLE,
            "As seconds_to_breach, but one breach in ten comes before it; null where that is not"
            " known.",
        ),
        TableColumn(
            "seconds_to_breach",
            DOUBLE,
            "From to_ns until a quota is likely to be reached, the nearer of the two; 0 where one"
            " is, was and has no room yet, or acted in this minute (evicted, or held producers);"
            " null when that is not likely within a day.",
        ),
        TableColumn(
            "seconds_to_breach_latest",
            DOUBLE,
            "As seconds_to_breach, but one breach in ten comes after it; null when that is beyond a"
            " day, or not known.",
        ),
        TableColumn(
            "breach_quota", STRING, "The quota those seconds are of: size, time; null: none."
        ),
        TableColumn(
            "method",
            STRING,
            "How they were found. theil_sen: from the hour before; broker: by the broker, from its"
            " smoothed rate, while there are fewer than ten samples; none: no quota is approached;"
            " null: none is in force.",
        ),
        TableColumn(
            "forecast_at",
            ColumnType.TIMESTAMP,
            "When the forecast was made: the end of this minute, or of an earlier one of the same"
            " five. What passed since then is taken off the seconds.",
        ),
        TableColumn(
            "seconds_to_breach_broker",
            DOUBLE,
            "The broker's own figure, from this minute's end on; the nearer of the two quotas'.",
        ),
        *(column for column in INTERVALS.columns if column.name in EVICTION_FIELDS),
        TableColumn(
            "held_seconds", DOUBLE, "Time of the minute in which a quota held sent messages."
        ),
        TableColumn("parked_messages", LONG, "Messages that a quota holds at the minute's end."),
        TableColumn("parked_bytes", LONG, "Bytes that a quota holds at the minute's end."),
        TableColumn("sentence", STRING, "All that in words."),
    ),
    ("date", "hour"),
    ("minute",),
)
"""Topics with a quota in force at the minute's end, and those where one acted in the minute."""

EVICTION_EVENT: Final = "eviction"

EVENT_IDENTITY: Final = ("source", "boot_id", "seq", "row")
"""The identity of an event; a row with the same is the same message, read twice."""

EVICTIONS: Final = Table(
    "evictions",
    (
        *PARTITION,
        TableColumn("time", ColumnType.TIMESTAMP, "When it happened."),
        TableColumn("time_ns", LONG, "When it happened. [ns]"),
        *TOPIC_COLUMNS,
        TableColumn("broker", STRING, "Broker that evicted."),
        *(column for column in HEADER if column.name in EVENT_IDENTITY),
        TableColumn("quota", STRING, "The quota that was exceeded: size or time."),
        TableColumn("policy", STRING, "What it does when it is exceeded, by Pulsar's name."),
        TableColumn("quota_source", STRING, "Where it is set: topic, namespace or broker."),
        TableColumn("limit_bytes", LONG, "Its limit; null for a time quota."),
        TableColumn("limit_ns", LONG, "Its limit; null for a size quota."),
        TableColumn("backlog_bytes_start", LONG, "Backlog of the slowest subscription before."),
        TableColumn("backlog_bytes", LONG, "Backlog of the slowest subscription after."),
        TableColumn("oldest_age_ns_start", LONG, "Age of the oldest message before."),
        TableColumn(
            "oldest_age_ns", LONG, "Age of the oldest message after; null without backlog."
        ),
        TableColumn("acts", LONG, "Acts of eviction in the event's window that it sums up."),
        TableColumn("messages", LONG, "Messages lost, summed over subscriptions."),
        TableColumn("bytes", LONG, "Bytes lost, summed over subscriptions."),
        TableColumn(
            "subscriptions",
            STRING,
            "Who lost them, a JSON array of objects with subscription, messages and bytes, the"
            " largest loss first.",
        ),
        TableColumn(
            "subscriptions_count", LONG, "How many lost some, also those that the array leaves out."
        ),
    ),
    ("date", "hour"),
    ("time_ns",),
)
