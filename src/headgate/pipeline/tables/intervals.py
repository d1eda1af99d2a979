"""The table ``intervals``: counters and levels of each subject, by minute."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from headgate.pipeline.tables.bronze import BRONZE_SAMPLES, EVIDENCE_VALUES, SAMPLED_KINDS
from headgate.pipeline.tables.columns import (
    DOUBLE,
    EPOCH_NS,
    HOUR_NS,
    KIND,
    LONG,
    MINUTE_COLUMN,
    MINUTE_NS,
    NS,
    PARTITION,
    SHARE,
    STRING,
    Sum,
    Table,
    TableColumn,
    record_columns,
    required,
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

EVICTED_BY: Final = ("evicted_by", "evicted_by_limit", "evicted_by_source")
"""Columns about the quota that evicted last."""

EXPIRED_BY: Final = ("expired_by_ttl_ns", "expired_by_source")
"""Columns about the TTL that expired messages last."""

START_LEVELS: Final = ("backlog_messages", "backlog_bytes", "unacked", "delayed")
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
        MINUTE_COLUMN,
        *(by_name[name] for name in KEY_COLUMNS),
        TableColumn("broker", STRING, "Broker that wrote the minute's last row."),
        TableColumn(
            "evidence",
            STRING,
            "Evidence of the minute's last row: measured or inferred.",
            values=EVIDENCE_VALUES,
        ),
        *required(
            TableColumn("from_ns", LONG, "Start of the minute's account.", EPOCH_NS),
            TableColumn("to_ns", LONG, "End of the minute's account.", EPOCH_NS),
            TableColumn(
                "covered_ns",
                LONG,
                "Time between them that rows cover, without lost rows.",
                NS,
                least=0,
            ),
        ),
        TableColumn(
            "completeness", DOUBLE, "covered_ns / (to_ns - from_ns).", SHARE, least=0, most=1
        ),
        TableColumn("samples", LONG, "Rows that end in the minute.", least=0),
        TableColumn("gaps", LONG, "Parts of the minute with lost rows.", least=0),
        TableColumn(
            "restarts",
            LONG,
            "Times counting began again, after a restart of the broker or a reload of the topic.",
            least=0,
        ),
        TableColumn("resets", LONG, "Times a cumulative value fell.", least=0),
        TableColumn(
            "clock_steps", LONG, "Rows whose window had a step of the wall clock.", least=0
        ),
        *(by_name[name] for name in values),
        *(
            replace(by_name[name], name=f"{name}_start", comment=f"{name} at from_ns.")
            for name in START_LEVELS
        ),
        TableColumn("oldest_age_max_ns", LONG, "Largest oldest_age_ns in the minute.", NS, least=0),
        TableColumn(
            "backlog_bytes_max", LONG, "Largest backlog_bytes in the minute.", "bytes", least=0
        ),
    )


INTERVALS: Final = Table(
    "intervals",
    _interval_columns(),
    ("date", "hour", "kind"),
    ("minute",),
    meaning="One row for each topic, subscription and limiter, and minute with telemetry.",
    key=("kind", *KEY_COLUMNS, "minute"),
    follows_from=(BRONZE_SAMPLES.name,),
    sums=(
        Sum("from_before_to", ("from_ns",), "to_ns", is_at_most=True),
        Sum("covered_within_account", ("covered_ns", "from_ns"), "to_ns", is_at_most=True),
    ),
)

TOPIC_KEY: Final = ("cluster", "topic", "partition", "incarnation")
TOPIC_COLUMNS: Final = tuple(column for column in INTERVALS.columns if column.name in TOPIC_KEY)
TOPIC_ORDER: Final = (*TOPIC_KEY, "minute")
"""Order of the minutes of topics for kernels: by topic, then by time."""
