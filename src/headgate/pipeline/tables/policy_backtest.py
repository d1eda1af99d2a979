"""The table ``policy_backtest``: what each topic would have done under each point of a grid."""

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
    TableColumn("from_ns", LONG, "Where the replay begins."),
    TableColumn("to_ns", LONG, "Where it ends."),
    TableColumn("samples", LONG, "Steps that were replayed; unknown time is left out."),
    TableColumn("step_ns", LONG, "Length of each."),
    TableColumn(
        "censored_share",
        DOUBLE,
        "Part of the steps in which a limit or quota held producers all along, 0 to 1.",
    ),
    TableColumn(
        "drain_known_share",
        DOUBLE,
        "Part of the steps in which old messages waited, so that the drain was measured, 0 to 1.",
    ),
    TableColumn("backlog_bytes_start", DOUBLE, "Backlog at the beginning."),
    TableColumn("seconds_over_quota", DOUBLE, "Time at a quota that stops producers."),
    TableColumn("quota_seconds", DOUBLE, "Time in which any quota was in force."),
    TableColumn(
        "drain_used",
        DOUBLE,
        "What consumers did of what they could while producers waited.",
    ),
    TableColumn("wanted_bytes", DOUBLE, "What producers wanted to publish."),
    TableColumn("published_bytes", DOUBLE, "What they published."),
    TableColumn("parked_seconds", DOUBLE, "Time in which anything waited, or was refused."),
    TableColumn("parked_bytes_max", DOUBLE, "Most that waited at once."),
    TableColumn("backlog_bytes_max", DOUBLE, "Largest backlog."),
    TableColumn("activations", DOUBLE, "How often a limit of the controller began."),
    TableColumn(
        "jitter", DOUBLE, "Changes of what is published from step to step, in parts of all of it."
    ),
    TableColumn("evicted_bytes", DOUBLE, "What a quota took from subscriptions."),
)
"""What the replay of one topic under one point says."""

POLICY_BACKTEST: Final = Table(
    "policy_backtest",
    (
        TableColumn("run_id", STRING, "Name of the run; a run replaces its own rows."),
        TableColumn("run_at", ColumnType.TIMESTAMP, "When it was made."),
        TableColumn("name", STRING, "What the point is called in the grid file, or its number."),
        TableColumn("settings", STRING, "The point as in the grid file, one JSON object."),
        *REPLAY_COLUMNS,
        TableColumn("score", DOUBLE, "Of the point over all topics; lower is better."),
        TableColumn(
            "rank", ColumnType.INT, "Of the point by its score, from 1; equal scores share it."
        ),
        TableColumn("is_pareto", ColumnType.BOOLEAN, "No other point is better in every respect."),
    ),
    ("run_id",),
    ("grid_point",),
)
