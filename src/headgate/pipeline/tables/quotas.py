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
    """Columns of the limit and the use of one type of quota."""
    unit = "bytes" if quota == "size" else "ns"
    taken = "backlog_bytes / size_limit_bytes" if quota == "size" else "oldest age / time_limit_ns"
    most = "backlog_bytes_max" if quota == "size" else "oldest_age_max_ns"
    rest = "" if quota == "size" else ", 0 without backlog"
    return (
        TableColumn(
            f"{quota}_limit_{unit}",
            LONG,
            f"Limit of the {quota} quota at the minute's end; null if there is none. [{unit}]",
        ),
        TableColumn(f"{quota}_policy", STRING, "Policy of that quota, by Pulsar's name."),
        TableColumn(f"{quota}_source", STRING, "Source of that quota: topic, namespace or broker."),
        TableColumn(
            f"{quota}_use",
            DOUBLE,
            f"{taken} at the minute's end{rest}; 1 is full; null without a limit above 0.",
        ),
        TableColumn(
            f"{quota}_use_max",
            DOUBLE,
            f"{most} / {quota}_limit_{unit}: the largest in the minute, by the limit at its end.",
        ),
    )


THEIL_SEN_METHOD: Final = "theil_sen"
BROKER_METHOD: Final = "broker"
NO_METHOD: Final = "none"
"""Values of ``method``: a forecast from the hour before, the broker's own from its smoothed rate,
or no breach predicted."""

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
        TableColumn("completeness", DOUBLE, "Share of the minute that was sampled, 0 to 1."),
        TableColumn(
            "to_ns", LONG, "End of the minute, or of its telemetry; levels are measured then. [ns]"
        ),
        TableColumn(
            "backlog_bytes", LONG, "Backlog of the slowest subscription at the minute's end."
        ),
        TableColumn("backlog_bytes_max", LONG, "Largest backlog_bytes in the minute."),
        TableColumn("oldest_age_ns", LONG, "Age of the oldest message then; null without backlog."),
        TableColumn("oldest_age_max_ns", LONG, "Largest oldest_age_ns in the minute."),
        TableColumn("oldest_subscription", STRING, "Subscription with that message."),
        *_quota_columns("size"),
        *_quota_columns("time"),
        TableColumn(
            "seconds_to_breach_earliest",
            DOUBLE,
            "Time before which one breach in ten comes, from to_ns; null if it is not known.",
        ),
        TableColumn(
            "seconds_to_breach",
            DOUBLE,
            "Time from to_ns to the likely breach of the quota that is reached first; 0 if one is"
            " reached, has no room yet, or acted in this minute (evicted, or parked messages);"
            " null if"
            " none is likely within a day.",
        ),
        TableColumn(
            "seconds_to_breach_latest",
            DOUBLE,
            "Time after which one breach in ten comes, from to_ns; null if it is beyond a day,"
            " or not"
            " known.",
        ),
        TableColumn("breach_quota", STRING, "Quota of these seconds: size, time, or null."),
        TableColumn(
            "method",
            STRING,
            "Method of these seconds. theil_sen: forecast from the hour before; broker: the"
            " broker's"
            " own, while there are fewer than ten samples; none: no breach predicted; null: no"
            " quota"
            " in force.",
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
        TableColumn("held_seconds", DOUBLE, "Time of the minute in which a quota parked messages."),
        TableColumn("parked_messages", LONG, "Messages that a quota parks at the minute's end."),
        TableColumn("parked_bytes", LONG, "Bytes that a quota parks at the minute's end."),
        TableColumn("sentence", STRING, "The row in words."),
    ),
    ("date", "hour"),
    ("minute",),
)
"""Topics by minute with a quota in force at its end, or one that acted in it."""

EVICTION_EVENT: Final = "eviction"

EVENT_IDENTITY: Final = ("source", "boot_id", "seq", "row")
"""The identity of an event; a row with the same is the same message, read twice."""

EVICTIONS: Final = Table(
    "evictions",
    (
        *PARTITION,
        TableColumn("time", ColumnType.TIMESTAMP, "Time of the eviction."),
        TableColumn("time_ns", LONG, "Time of the eviction, ns since the epoch."),
        *TOPIC_COLUMNS,
        TableColumn("broker", STRING, "Broker that evicted."),
        *(column for column in HEADER if column.name in EVENT_IDENTITY),
        TableColumn("quota", STRING, "The quota that was exceeded: size or time."),
        TableColumn("policy", STRING, "Its policy, by Pulsar's name."),
        TableColumn("quota_source", STRING, "Source of the quota: topic, namespace or broker."),
        TableColumn("limit_bytes", LONG, "Limit of a size quota; null for a time quota."),
        TableColumn("limit_ns", LONG, "Limit of a time quota; null for a size quota. [ns]"),
        TableColumn("backlog_bytes_start", LONG, "Backlog of the slowest subscription before."),
        TableColumn("backlog_bytes", LONG, "Backlog of the slowest subscription after."),
        TableColumn("oldest_age_ns_start", LONG, "Age of the oldest message before."),
        TableColumn(
            "oldest_age_ns", LONG, "Age of the oldest message after; null without backlog."
        ),
        TableColumn("acts", LONG, "Evictions in the event's window, which the event sums up."),
        TableColumn("messages", LONG, "Messages lost, summed over subscriptions."),
        TableColumn("bytes", LONG, "Bytes lost, summed over subscriptions."),
        TableColumn(
            "subscriptions",
            STRING,
            "Loss of each subscription, largest first: a JSON array of objects with subscription,"
            " messages and bytes.",
        ),
        TableColumn(
            "subscriptions_count",
            LONG,
            "Number of subscriptions with a loss, also those that the array leaves out.",
        ),
    ),
    ("date", "hour"),
    ("time_ns",),
)
