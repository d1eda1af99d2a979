"""Every table of the pipeline: columns, partitions, look-back. No Spark, no Arrow.

Column names that also are fields of the telemetry record have the record's meaning and unit; in a
row of a minute a cumulative field holds its growth inside the minute and a level its value at the
end of it. All times are UTC. ``date`` and ``hour`` are those of a row's last nanosecond, so that
a window that ends at a full hour belongs to the hour it covers.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final

from headgate.record.fields import FIELDS, QUOTA_TYPES, FieldType, Kind, Nature, field_names

MINUTE_NS: Final = 60_000_000_000
HOUR_NS: Final = 60 * MINUTE_NS

INTERVALS_LOOK_BACK_NS: Final = 2 * MINUTE_NS
"""How far beyond its own hour the rows of ``intervals`` depend on bronze rows, either way."""

PROVEN_LOOK_BACK_NS: Final = 24 * HOUR_NS
"""How far back ``attribution`` looks for a consumer's proven rate."""

BATCH_KIND: Final = "batch"
"""Kind of the bronze rows that say which batches arrived; one for each message."""


class ColumnType(enum.Enum):
    """Column types that Spark, Arrow, Delta and DuckDB share."""

    STRING = "string"
    LONG = "long"
    INT = "int"
    DOUBLE = "double"
    BOOLEAN = "boolean"
    TIMESTAMP = "timestamp"
    DATE = "date"
    BINARY = "binary"


@dataclass(frozen=True, slots=True)
class TableColumn:
    """One column; ``comment`` is its documentation."""

    name: str
    type: ColumnType
    comment: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """One table of a pipeline folder."""

    name: str
    columns: tuple[TableColumn, ...]
    partition_by: tuple[str, ...]
    statistics: tuple[str, ...]
    """Columns whose least and largest value each file records."""

    def column_names(self) -> tuple[str, ...]:
        """Names in table order."""
        return tuple(column.name for column in self.columns)


_TYPES: Final = {
    FieldType.STRING: ColumnType.STRING,
    FieldType.INT64: ColumnType.LONG,
    FieldType.DOUBLE: ColumnType.DOUBLE,
    FieldType.BOOL: ColumnType.BOOLEAN,
}

SAMPLED_KINDS: Final = (Kind.SUBSCRIPTION, Kind.TOPIC, Kind.LIMITER)
"""The kinds with rows in ``bronze_samples`` and ``intervals``."""

_S, _L, _D = ColumnType.STRING, ColumnType.LONG, ColumnType.DOUBLE

_PARTITION: Final = (
    TableColumn("date", ColumnType.DATE, "UTC date of the row's last nanosecond."),
    TableColumn("hour", ColumnType.INT, "UTC hour of the row's last nanosecond, 0 to 23."),
)
_KIND: Final = TableColumn("kind", _S, "subscription, topic, limiter; in bronze also batch.")

_HEADER: Final = (
    TableColumn("source", _S, "Telemetry stream the message came over."),
    TableColumn("cluster", _S, "Cluster of the broker."),
    TableColumn("broker", _S, "Broker that wrote the row."),
    TableColumn("boot_id", _S, "Start of the broker that wrote the row."),
    TableColumn("seq", _L, "Number of the message in that boot."),
    TableColumn("row", ColumnType.INT, "Place of the row in its message and kind."),
    TableColumn("window_start_ns", _L, "Start of the message's window, ns since the epoch."),
    TableColumn("window_end_ns", _L, "End of the message's window, ns since the epoch."),
    TableColumn("window_end", ColumnType.TIMESTAMP, "End of the message's window."),
    TableColumn("clock_step", ColumnType.BOOLEAN, "The wall clock stepped in the window."),
)


def _record_columns(*kinds: Kind) -> tuple[TableColumn, ...]:
    columns: dict[str, TableColumn] = {}
    for kind in kinds:
        for field in FIELDS[kind]:
            unit = f" [{field.unit}]" if field.unit else ""
            columns.setdefault(
                field.name, TableColumn(field.name, _TYPES[field.type], field.meaning + unit)
            )
    return tuple(columns.values())


BRONZE_SAMPLES: Final = Table(
    "bronze_samples",
    (*_PARTITION, _KIND, *_HEADER, *_record_columns(*SAMPLED_KINDS)),
    ("date", "hour", "kind"),
    ("window_end_ns", "window_end"),
)
BRONZE_EVENTS: Final = Table(
    "bronze_events",
    (
        *_PARTITION,
        *_HEADER,
        TableColumn("time", ColumnType.TIMESTAMP, "When it happened."),
        *_record_columns(Kind.EVENT),
    ),
    ("date", "hour"),
    ("window_end_ns", "window_end"),
)
BRONZE_QUARANTINE: Final = Table(
    "bronze_quarantine",
    (
        *_PARTITION,
        TableColumn("message_topic", _S, "Topic the message was read from."),
        TableColumn("message_id", _S, "Its id, hexadecimal."),
        TableColumn("publish_time", ColumnType.TIMESTAMP, "When it was published."),
        TableColumn("reason", _S, "Why it is not a record that can be read."),
        TableColumn("value", ColumnType.BINARY, "The message as it was."),
    ),
    ("date", "hour"),
    (),
)

KEY_COLUMNS: Final = (
    "cluster",
    "topic",
    "partition",
    "subscription",
    "level",
    "subject",
    "dimension",
    "incarnation",
)
"""Whom a row of ``intervals`` is about; those that its kind does not have are null."""

START_LEVELS: Final = ("backlog_messages", "backlog_bytes", "unacked")
"""Levels of which ``intervals`` also has the value at the minute's start, ``*_start``."""


def cumulative_columns(kind: Kind) -> tuple[str, ...]:
    """Record fields of ``kind`` that ``intervals`` differentiates."""
    return field_names(kind, Nature.CUMULATIVE)


def level_columns(kind: Kind) -> tuple[str, ...]:
    """Record fields of ``kind`` whose value at the minute's end ``intervals`` keeps."""
    return field_names(kind, Nature.LEVEL)


def _interval_columns() -> tuple[TableColumn, ...]:
    by_name = {column.name: column for column in _record_columns(*SAMPLED_KINDS)}
    by_name["cluster"] = TableColumn("cluster", _S, "Cluster of the broker.")
    values = dict.fromkeys(
        name for kind in SAMPLED_KINDS for name in (*cumulative_columns(kind), *level_columns(kind))
    )
    return (
        *_PARTITION,
        _KIND,
        TableColumn("minute", ColumnType.TIMESTAMP, "Start of the minute."),
        *(by_name[name] for name in KEY_COLUMNS),
        TableColumn("broker", _S, "Broker that wrote the minute's last row."),
        TableColumn("from_ns", _L, "Where the account of this minute begins."),
        TableColumn("to_ns", _L, "Where the account of this minute ends."),
        TableColumn("covered_ns", _L, "Time inside it that rows cover, lost rows left out."),
        TableColumn("completeness", _D, "covered_ns / (to_ns - from_ns), 0 to 1."),
        TableColumn("samples", _L, "Rows that end in the minute."),
        TableColumn("gaps", _L, "Pieces of the minute with lost rows."),
        TableColumn("restarts", _L, "Times counting began anew: restart of the broker, reload."),
        TableColumn("resets", _L, "Times a cumulative value fell."),
        TableColumn("clock_steps", _L, "Rows whose window had a step of the wall clock."),
        *(by_name[name] for name in values),
        *(TableColumn(f"{name}_start", _L, f"{name} at from_ns.") for name in START_LEVELS),
        TableColumn("oldest_age_max_ns", _L, "Largest oldest_age_ns in the minute."),
    )


INTERVALS: Final = Table("intervals", _interval_columns(), ("date", "hour", "kind"), ("minute",))

BLAMES: Final = (
    "NONE",
    "CONSUMER",
    "NO_CONSUMER",
    "THROTTLED_SUBSCRIPTION",
    "THROTTLED_TOPIC",
    "THROTTLED_BROKER",
    "BROKER",
)
"""Whom a share of blame may fall on, NONE being nobody; also the names of the verdicts."""

SHARE_COLUMNS: Final = tuple(f"share_{blame.lower()}" for blame in BLAMES)

JUDGEMENT_COLUMNS: Final = (
    TableColumn("growth_messages", _L, "Backlog at the end less backlog at the start."),
    TableColumn("backlog_messages", _L, "Backlog at the end."),
    TableColumn("residual_messages", _L, "Growth that the counted causes do not explain."),
    TableColumn("appended", _L, "Messages appended."),
    TableColumn("acked", _L, "Messages acknowledged."),
    TableColumn("from_ns", _L, "Where the account begins."),
    TableColumn("to_ns", _L, "Where the account ends."),
    TableColumn("oldest_age_max_ns", _L, "Largest age of the oldest deliverable message."),
    *(
        TableColumn(name, _D, "Share of the blame by seconds; all shares sum to 1.")
        for name in SHARE_COLUMNS
    ),
    TableColumn("verdict", _S, "NONE, or the largest share of blame by the verdict law."),
    TableColumn("second", _S, "The cause named second, or null."),
    TableColumn("bystander", ColumnType.BOOLEAN, "second is a limiter that merely stood by."),
    TableColumn("dimension", _S, "What the named limiter counts: messages, bytes or null."),
    TableColumn("proven_rate_per_s", _D, "The consumers' proven rate, or null."),
    TableColumn(
        "grows_without_limit",
        ColumnType.BOOLEAN,
        "Whether the backlog would have grown without that limit; null when unknown.",
    ),
    TableColumn("confidence", _D, "0 to 1: margin x completeness x agreement."),
    TableColumn("completeness", _D, "0 to 1."),
    TableColumn("sentence", _S, "The verdict in words."),
)
ATTRIBUTION_KEY: Final = ("cluster", "topic", "partition", "subscription", "incarnation")

ATTRIBUTION: Final = Table(
    "attribution",
    (
        *_PARTITION,
        TableColumn("minute", ColumnType.TIMESTAMP, "Start of the minute."),
        *(column for column in INTERVALS.columns if column.name in ATTRIBUTION_KEY),
        TableColumn("broker", _S, "Broker that wrote the minute's last row."),
        *JUDGEMENT_COLUMNS,
    ),
    ("date", "hour"),
    ("minute",),
)

TOPIC_KEY: Final = ("cluster", "topic", "partition", "incarnation")
_TOPIC_COLUMNS: Final = tuple(column for column in INTERVALS.columns if column.name in TOPIC_KEY)


def _quota_columns(quota: str) -> tuple[TableColumn, ...]:
    """What is in force of one type of quota, and how much of it is taken."""
    unit = "bytes" if quota == "size" else "ns"
    taken = "backlog_bytes / size_limit_bytes" if quota == "size" else "oldest age / time_limit_ns"
    rest = "" if quota == "size" else ", 0 without backlog"
    return (
        TableColumn(
            f"{quota}_limit_{unit}",
            _L,
            f"Limit of the {quota} quota at the minute's end; null when there is none. [{unit}]",
        ),
        TableColumn(f"{quota}_policy", _S, "What happens at that limit, by Pulsar's name."),
        TableColumn(f"{quota}_source", _S, "Where that limit is set: topic, namespace or broker."),
        TableColumn(
            f"{quota}_use",
            _D,
            f"{taken} at the minute's end{rest}; 1 is full; null without a limit above 0.",
        ),
    )


EVICTION_FIELDS: Final = tuple(
    f"eviction_{quota}_{amount}"
    for quota in QUOTA_TYPES
    for amount in ("acts", "messages", "bytes")
)
"""What quotas took, in the record's topic rows and in tables."""

QUOTA_USAGE: Final = Table(
    "quota_usage",
    (
        *_PARTITION,
        TableColumn("minute", ColumnType.TIMESTAMP, "Start of the minute."),
        *_TOPIC_COLUMNS,
        TableColumn("broker", _S, "Broker that wrote the minute's last row."),
        TableColumn("completeness", _D, "How much of the minute was sampled, 0 to 1."),
        TableColumn(
            "backlog_bytes", _L, "Backlog of the slowest subscription at the minute's end."
        ),
        TableColumn("oldest_age_ns", _L, "Age of the oldest message then; null without backlog."),
        TableColumn("oldest_age_max_ns", _L, "Largest oldest_age_ns in the minute."),
        TableColumn("oldest_subscription", _S, "The subscription that message belongs to."),
        *_quota_columns("size"),
        *_quota_columns("time"),
        TableColumn(
            "seconds_to_breach",
            _D,
            "From the minute's end until a quota is reached at the present rate, the nearer of the"
            " two; 0 where one is; null when none is approached.",
        ),
        TableColumn("breach_quota", _S, "The quota that is reached first: size, time or null."),
        TableColumn(
            "method",
            _S,
            "How seconds_to_breach was found; broker: by the broker, from its smoothed rate.",
        ),
        *(column for column in INTERVALS.columns if column.name in EVICTION_FIELDS),
        TableColumn("held_seconds", _D, "Time of the minute in which a quota held sent messages."),
        TableColumn("parked_messages", _L, "Messages that a quota holds at the minute's end."),
        TableColumn("parked_bytes", _L, "Bytes that a quota holds at the minute's end."),
        TableColumn("sentence", _S, "All that in words."),
    ),
    ("date", "hour"),
    ("minute",),
)
"""Topics with a quota in force at the minute's end, and those where one acted in the minute."""

EVICTION_EVENT: Final = "eviction"

EVENT_IDENTITY: Final = ("source", "boot_id", "seq", "row")
"""Tells one event from all others; what has the same is the same message, read twice."""

EVICTIONS: Final = Table(
    "evictions",
    (
        *_PARTITION,
        TableColumn("time", ColumnType.TIMESTAMP, "When it happened."),
        TableColumn("time_ns", _L, "When it happened. [ns]"),
        *_TOPIC_COLUMNS,
        TableColumn("broker", _S, "Broker that evicted."),
        *(column for column in _HEADER if column.name in EVENT_IDENTITY),
        TableColumn("quota", _S, "The quota that was exceeded: size or time."),
        TableColumn("policy", _S, "What it does when it is exceeded, by Pulsar's name."),
        TableColumn("quota_source", _S, "Where it is set: topic, namespace or broker."),
        TableColumn("limit_bytes", _L, "Its limit; null for a time quota."),
        TableColumn("limit_ns", _L, "Its limit; null for a size quota."),
        TableColumn("backlog_bytes_start", _L, "Backlog of the slowest subscription before."),
        TableColumn("backlog_bytes", _L, "Backlog of the slowest subscription after."),
        TableColumn("oldest_age_ns_start", _L, "Age of the oldest message before."),
        TableColumn("oldest_age_ns", _L, "Age of the oldest message after; null without backlog."),
        TableColumn("acts", _L, "Acts of eviction in the event's window that it sums up."),
        TableColumn("messages", _L, "Messages lost, summed over subscriptions."),
        TableColumn("bytes", _L, "Bytes lost, summed over subscriptions."),
        TableColumn(
            "subscriptions",
            _S,
            "Who lost them, a JSON array of objects with subscription, messages and bytes, the"
            " largest loss first.",
        ),
        TableColumn(
            "subscriptions_count", _L, "How many lost some, also those that the array leaves out."
        ),
    ),
    ("date", "hour"),
    ("time_ns",),
)

TABLES: Final = {
    table.name: table
    for table in (
        BRONZE_SAMPLES,
        BRONZE_EVENTS,
        BRONZE_QUARANTINE,
        INTERVALS,
        ATTRIBUTION,
        QUOTA_USAGE,
        EVICTIONS,
    )
}
"""All tables by name."""
