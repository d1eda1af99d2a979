"""The table ``policy_backtest``: the replay of each topic under each point of a grid."""

from __future__ import annotations

from typing import Final

from headgate.pipeline.tables.bronze import BRONZE_SAMPLES
from headgate.pipeline.tables.columns import (
    DOUBLE,
    EPOCH_NS,
    LONG,
    NS,
    SHARE,
    STRING,
    ColumnType,
    Table,
    TableColumn,
    record_columns,
)
from headgate.record.fields import Kind

TOPIC_COLUMNS: Final = (
    TableColumn("cluster", STRING, "Cluster of the broker."),
    *(
        column
        for column in record_columns(Kind.TOPIC)
        if column.name in ("topic", "partition", "incarnation")
    ),
)

REPLAY_COLUMNS: Final = (
    TableColumn("grid_point", ColumnType.INT, "Number of the point in the grid, from 0."),
    *TOPIC_COLUMNS,
    TableColumn("from_ns", LONG, "Start of the replay.", EPOCH_NS),
    TableColumn("to_ns", LONG, "End of the replay.", EPOCH_NS),
    TableColumn("samples", LONG, "Replayed steps, without unknown time.", least=0),
    TableColumn("step_ns", LONG, "Length of a step.", NS, least=0),
    TableColumn(
        "censored_share",
        DOUBLE,
        "Share of the steps in which a limit or quota parked messages all the time.",
        SHARE,
        least=0,
        most=1,
    ),
    TableColumn(
        "drain_known_share",
        DOUBLE,
        "Share of the steps with old messages, in which the drain rate was measured.",
        SHARE,
        least=0,
        most=1,
    ),
    TableColumn("backlog_bytes_start", DOUBLE, "Backlog at the start.", "bytes", least=0),
    TableColumn(
        "seconds_over_quota", DOUBLE, "Time at a quota that stops producers.", "s", least=0
    ),
    TableColumn("quota_seconds", DOUBLE, "Time in which any quota was in force.", "s", least=0),
    TableColumn(
        "drain_used",
        DOUBLE,
        "Share of the drain rate that consumers used while producers waited.",
    ),
    TableColumn("wanted_bytes", DOUBLE, "Bytes that producers offered.", "bytes", least=0),
    TableColumn("published_bytes", DOUBLE, "Bytes that they published.", "bytes", least=0),
    TableColumn(
        "parked_seconds", DOUBLE, "Time in which messages were parked or refused.", "s", least=0
    ),
    TableColumn("parked_bytes_max", DOUBLE, "Most bytes parked at once.", "bytes", least=0),
    TableColumn("backlog_bytes_max", DOUBLE, "Largest backlog.", "bytes", least=0),
    TableColumn("activations", DOUBLE, "How often the controller began to limit."),
    TableColumn(
        "jitter",
        DOUBLE,
        "Changes of the published bytes between steps, as a share of all published bytes.",
    ),
    TableColumn("evicted_bytes", DOUBLE, "Bytes that a quota evicted.", "bytes", least=0),
)
"""Columns of the replay of one topic under one point."""

POLICY_BACKTEST: Final = Table(
    "policy_backtest",
    (
        TableColumn("run_id", STRING, "Name of the run; a run replaces its own rows."),
        TableColumn("run_at", ColumnType.TIMESTAMP, "Time of the run."),
        TableColumn("name", STRING, "Name of the point in the grid file, or its number."),
        TableColumn(
            "settings", STRING, "The point as in the grid file, one JSON object.", json_fields=()
        ),
        *REPLAY_COLUMNS,
        TableColumn("score", DOUBLE, "Score of the point over all topics; lower is better."),
        TableColumn(
            "rank",
            ColumnType.INT,
            "Rank of the point by its score, from 1; equal scores share a rank.",
        ),
        TableColumn(
            "is_pareto", ColumnType.BOOLEAN, "Whether no other point is better in every respect."
        ),
    ),
    ("run_id",),
    ("grid_point",),
    meaning="One row for each run, point of its grid and topic.",
    key=("run_id", "grid_point", *(column.name for column in TOPIC_COLUMNS)),
    follows_from=(BRONZE_SAMPLES.name,),
)
