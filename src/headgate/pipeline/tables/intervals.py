"""The table ``intervals``: counters and levels of each subject, by minute."""

from __future__ import annotations

from typing import Final

from headgate.pipeline.tables.bronze import SAMPLED_KINDS
from headgate.pipeline.tables.columns import (
    DOUBLE,
    HOUR_NS,
    KIND,
    LONG,
    MINUTE_NS,
    PARTITION,
    STRING,
    ColumnType,
    Table,
    TableColumn,
    record_columns,
)
from headgate.record.fields import Kind, Nature, field_names

INTERVALS_LOOK_BACK_NS: Final = 2 * MINUTE_NS
"""How far before and after its own hour a row of ``intervals`` depends on bronze rows."""

GAP_NS_MAX: Final = 24 * HOUR_NS
"""How far beyond that if telemetry is missing: as long as the coverage gap, at most this."""

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
"""The subject of a row of ``intervals``; columns that its kind lacks are null."""

START_LEVELS: Final = ("backlog_messages", "backlog_bytes", "unacked")
"""Levels with a second column, ``*_start``, for the value at the minute's start."""


def cumulative_columns(kind: Kind) -> tuple[str, ...]:
    """Record fields of ``kind`` that ``intervals`` differentiates."""
    return field_names(kind, Nature.CUMULATIVE)


def level_columns(kind: Kind) -> tuple[str, ...]:
    """Record fields of ``kind`` whose value at the minute's end ``intervals`` keeps."""
    return field_names(kind, Nature.LEVEL)


def _interval_columns() -> tuple[TableColumn, ...]:
    by_name = {column.name: column for column in record_columns(*SAMPLED_KINDS)}
    by_name["cluster"] = TableColumn("cluster", STRING, "Cluster of the broker.")
    values = dict.fromkeys(
        name for kind in SAMPLED_KINDS for name in (*cumulative_columns(kind), *level_columns(kind))
    )
    return (
        *PARTITION,
        KIND,
        TableColumn("minute", ColumnType.TIMESTAMP, "Start of the minute."),
        *(by_name[name] for name in KEY_COLUMNS),
        TableColumn("broker", STRING, "Broker that wrote the minute's last row."),
        TableColumn("evidence", STRING, "Evidence of the minute's last row: measured or inferred."),
        TableColumn("from_ns", LONG, "Start of the minute's account, ns since the epoch."),
        TableColumn("to_ns", LONG, "End of the minute's account, ns since the epoch."),
        TableColumn(
            "covered_ns", LONG, "Time between them that rows cover, without lost rows. [ns]"
        ),
        TableColumn("completeness", DOUBLE, "covered_ns / (to_ns - from_ns), 0 to 1."),
        TableColumn("samples", LONG, "Rows that end in the minute."),
        TableColumn("gaps", LONG, "Parts of the minute with lost rows."),
        TableColumn(
            "restarts",
            LONG,
            "Times counting began again, after a restart of the broker or a reload of the topic.",
        ),
        TableColumn("resets", LONG, "Times a cumulative value fell."),
        TableColumn("clock_steps", LONG, "Rows whose window had a step of the wall clock."),
        *(by_name[name] for name in values),
        *(TableColumn(f"{name}_start", LONG, f"{name} at from_ns.") for name in START_LEVELS),
        TableColumn("oldest_age_max_ns", LONG, "Largest oldest_age_ns in the minute."),
        TableColumn("backlog_bytes_max", LONG, "Largest backlog_bytes in the minute."),
    )


INTERVALS: Final = Table("intervals", _interval_columns(), ("date", "hour", "kind"), ("minute",))

BY_NAME: Final = {column.name: column for column in INTERVALS.columns}
"""The columns of ``intervals`` by name, for other tables and kernels that have some of them."""

TOPIC_KEY: Final = ("cluster", "topic", "partition", "incarnation")
TOPIC_COLUMNS: Final = tuple(column for column in INTERVALS.columns if column.name in TOPIC_KEY)
TOPIC_ORDER: Final = (*TOPIC_KEY, "minute")
"""Order of the minutes of topics for kernels: by topic, then by time."""
