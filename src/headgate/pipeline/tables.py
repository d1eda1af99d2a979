"""Every table of the pipeline: columns, partitions, look-back. No Spark, no Arrow.

Column names that also are fields of the telemetry record have the record's meaning and unit; in
``intervals`` a cumulative field holds its growth inside the minute and a level its value at the
end of it. All times are UTC. ``date`` and ``hour`` are those of a row's last nanosecond, so that
a window that ends at a full hour belongs to the hour it covers.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final

from headgate.record.fields import FIELDS, FieldType, Kind, Nature, field_names

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

TABLES: Final = {
    table.name: table
    for table in (BRONZE_SAMPLES, BRONZE_EVENTS, BRONZE_QUARANTINE, INTERVALS, ATTRIBUTION)
}
"""All tables by name."""
