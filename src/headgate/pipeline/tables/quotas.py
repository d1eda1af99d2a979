"""The tables about backlog quotas: ``quota_usage`` and ``evictions``."""

from __future__ import annotations

from typing import Final

from headgate.pipeline.tables.bronze import BRONZE_EVENTS, EVENT_IDENTITY, HEADER
from headgate.pipeline.tables.columns import (
    DOUBLE,
    EPOCH_NS,
    LONG,
    MINUTE_COLUMN,
    NS,
    PARTITION,
    SHARE,
    STRING,
    Agreement,
    ColumnType,
    Sum,
    Table,
    TableColumn,
    required,
)
from headgate.pipeline.tables.intervals import INTERVALS, TOPIC_COLUMNS, TOPIC_KEY
from headgate.record.fields import QUOTA_TYPES, Kind


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
            f"Limit of the {quota} quota at the minute's end; null if there is none.",
            unit,
            least=0,
        ),
        TableColumn(f"{quota}_policy", STRING, "Policy of that quota, by Pulsar's name."),
        TableColumn(f"{quota}_source", STRING, "Source of that quota: topic, namespace or broker."),
        TableColumn(
            f"{quota}_use",
            DOUBLE,
            f"{taken} at the minute's end{rest}; 1 is full; null without a limit above 0.",
            least=0,
        ),
        TableColumn(
            f"{quota}_use_max",
            DOUBLE,
            f"{most} / {quota}_limit_{unit}: the largest in the minute, by the limit at its end.",
            least=0,
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
        MINUTE_COLUMN,
        *TOPIC_COLUMNS,
        TableColumn("broker", STRING, "Broker that wrote the minute's last row."),
        TableColumn(
            "completeness", DOUBLE, "Share of the minute that was sampled.", SHARE, least=0, most=1
        ),
        TableColumn(
            "to_ns",
            LONG,
            "End of the minute, or of its telemetry; levels are measured then.",
            EPOCH_NS,
            is_required=True,
        ),
        TableColumn(
            "backlog_bytes",
            LONG,
            "Backlog of the slowest subscription at the minute's end.",
            "bytes",
            least=0,
        ),
        TableColumn(
            "backlog_bytes_max", LONG, "Largest backlog_bytes in the minute.", "bytes", least=0
        ),
        TableColumn(
            "oldest_age_ns",
            LONG,
            "Age of the oldest message then; null without backlog.",
            NS,
            least=0,
        ),
        TableColumn("oldest_age_max_ns", LONG, "Largest oldest_age_ns in the minute.", NS, least=0),
        TableColumn("oldest_subscription", STRING, "Subscription with that message."),
        *_quota_columns("size"),
        *_quota_columns("time"),
        TableColumn(
            "seconds_to_breach_earliest",
            DOUBLE,
            "Time before which one breach in ten comes, from to_ns; null if it is not known.",
            "s",
            least=0,
        ),
        TableColumn(
            "seconds_to_breach",
            DOUBLE,
            "Time from to_ns to the likely breach of the quota that is reached first; 0 if one is"
            " reached, has no room yet, or acted in this minute (evicted, or parked messages);"
            " null if"
            " none is likely within a day.",
            "s",
            least=0,
        ),
        TableColumn(
            "seconds_to_breach_latest",
            DOUBLE,
            "Time after which one breach in ten comes, from to_ns; null if it is beyond a day,"
            " or not"
            " known.",
            "s",
            least=0,
        ),
        TableColumn(
            "breach_quota",
            STRING,
            "Quota of these seconds: size, time, or null.",
            values=QUOTA_TYPES,
        ),
        TableColumn(
            "method",
            STRING,
            "Method of these seconds. theil_sen: forecast from the hour before; broker: the"
            " broker's"
            " own, while there are fewer than ten samples; none: no breach predicted; null: no"
            " quota"
            " in force.",
            values=(THEIL_SEN_METHOD, BROKER_METHOD, NO_METHOD),
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
            "s",
            least=0,
        ),
        *(column for column in INTERVALS.columns if column.name in EVICTION_FIELDS),
        TableColumn(
            "held_seconds",
            DOUBLE,
            "Time of the minute in which a quota parked messages.",
            "s",
            least=0,
        ),
        TableColumn(
            "parked_messages",
            LONG,
            "Messages that a quota parks at the minute's end.",
            "messages",
            least=0,
        ),
        TableColumn(
            "parked_bytes", LONG, "Bytes that a quota parks at the minute's end.", "bytes", least=0
        ),
        TableColumn("sentence", STRING, "The row in words."),
    ),
    ("date", "hour"),
    ("minute",),
    meaning="One row for each topic and minute with a quota in force, or one that acted.",
    key=(*TOPIC_KEY, "minute"),
    follows_from=(INTERVALS.name,),
    sums=(
        Sum(
            "earliest_before_likely",
            ("seconds_to_breach_earliest",),
            "seconds_to_breach",
            tolerance=1e-6,
            is_at_most=True,
        ),
        Sum(
            "likely_before_latest",
            ("seconds_to_breach",),
            "seconds_to_breach_latest",
            tolerance=1e-6,
            is_at_most=True,
        ),
    ),
    agreements=tuple(
        Agreement(name, INTERVALS.name, name, (Kind.TOPIC.value,)) for name in EVICTION_FIELDS
    ),
)
"""Topics by minute with a quota in force at its end, or one that acted in it."""

EVICTION_EVENT: Final = "eviction"

EVICTIONS: Final = Table(
    "evictions",
    (
        *PARTITION,
        *required(
            TableColumn("time", ColumnType.TIMESTAMP, "Time of the eviction."),
            TableColumn("time_ns", LONG, "Time of the eviction.", EPOCH_NS),
        ),
        *TOPIC_COLUMNS,
        TableColumn("broker", STRING, "Broker that evicted."),
        *(column for column in HEADER if column.name in EVENT_IDENTITY),
        TableColumn(
            "quota",
            STRING,
            "The quota that was exceeded: size or time.",
            is_required=True,
            values=QUOTA_TYPES,
        ),
        TableColumn("policy", STRING, "Its policy, by Pulsar's name."),
        TableColumn("quota_source", STRING, "Source of the quota: topic, namespace or broker."),
        TableColumn(
            "limit_bytes", LONG, "Limit of a size quota; null for a time quota.", "bytes", least=0
        ),
        TableColumn("limit_ns", LONG, "Limit of a time quota; null for a size quota.", NS, least=0),
        TableColumn(
            "backlog_bytes_start",
            LONG,
            "Backlog of the slowest subscription before.",
            "bytes",
            least=0,
        ),
        TableColumn(
            "backlog_bytes", LONG, "Backlog of the slowest subscription after.", "bytes", least=0
        ),
        TableColumn("oldest_age_ns_start", LONG, "Age of the oldest message before.", NS, least=0),
        TableColumn(
            "oldest_age_ns",
            LONG,
            "Age of the oldest message after; null without backlog.",
            NS,
            least=0,
        ),
        TableColumn(
            "acts", LONG, "Evictions in the event's window, which the event sums up.", least=0
        ),
        TableColumn(
            "messages", LONG, "Messages lost, summed over subscriptions.", "messages", least=0
        ),
        TableColumn("bytes", LONG, "Bytes lost, summed over subscriptions.", "bytes", least=0),
        TableColumn(
            "subscriptions",
            STRING,
            "Loss of each subscription, largest first: a JSON array of objects with subscription,"
            " messages and bytes.",
            json_fields=(("subscription", STRING), ("messages", LONG), ("bytes", LONG)),
        ),
        TableColumn(
            "subscriptions_count",
            LONG,
            "Number of subscriptions with a loss, also those that the array leaves out.",
            least=0,
        ),
    ),
    ("date", "hour"),
    ("time_ns",),
    meaning="One row for each eviction event of a broker.",
    key=EVENT_IDENTITY,
    follows_from=(BRONZE_EVENTS.name,),
)
