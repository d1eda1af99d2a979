"""The table ``policy_backtest``: the replay of each topic under each point of a grid."""

from __future__ import annotations

from typing import Final

from headgate.pipeline.tables.columns import (
    DOUBLE,
    LONG,
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
    TableColumn("from_ns", LONG, "Start of the replay, ns since the epoch."),
    TableColumn("to_ns", LONG, "End of the replay, ns since the epoch."),
    TableColumn("samples", LONG, "Replayed steps, without unknown time."),
    TableColumn("step_ns", LONG, "Length of a step. [ns]"),
    TableColumn(
        "censored_share",
        DOUBLE,
        "Share of the steps in which a limit or quota parked messages all the time, 0 to 1.",
    ),
    TableColumn(
        "drain_known_share",
        DOUBLE,
        "Share of the steps with old messages, in which the drain rate was measured, 0 to 1.",
    ),
    TableColumn("backlog_bytes_start", DOUBLE, "Backlog at the start."),
    TableColumn("seconds_over_quota", DOUBLE, "Time at a quota that stops producers."),
    TableColumn("quota_seconds", DOUBLE, "Time in which any quota was in force."),
    TableColumn(
        "drain_used",
        DOUBLE,
        "Share of the drain rate that consumers used while producers waited.",
    ),
    TableColumn("wanted_bytes", DOUBLE, "Bytes that producers offered."),
    TableColumn("published_bytes", DOUBLE, "Bytes that they published."),
    TableColumn("parked_seconds", DOUBLE, "Time in which messages were parked or refused."),
    TableColumn("parked_bytes_max", DOUBLE, "Most bytes parked at once."),
    TableColumn("backlog_bytes_max", DOUBLE, "Largest backlog."),
    TableColumn("activations", DOUBLE, "How often the controller began to limit."),
    TableColumn(
        "jitter",
        DOUBLE,
        "Changes of the published bytes between steps, as a share of all published bytes.",
    ),
    TableColumn("evicted_bytes", DOUBLE, "Bytes that a quota evicted."),
)
"""Columns of the replay of one topic under one point."""

POLICY_BACKTEST: Final = Table(
    "policy_backtest",
    (
        TableColumn("run_id", STRING, "Name of the run; a run replaces its own rows."),
        TableColumn("run_at", ColumnType.TIMESTAMP, "Time of the run."),
        TableColumn("name", STRING, "Name of the point in the grid file, or its number."),
        TableColumn("settings", STRING, "The point as in the grid file, one JSON object."),
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
)
