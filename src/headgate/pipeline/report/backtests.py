"""The runs of the policy backtest, each over all its topics."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from headgate.pipeline.kernels.totals import totals
from headgate.pipeline.output.policy_settings import readable_settings
from headgate.pipeline.store.scan import TableScan
from headgate.pipeline.tables.intervals import TOPIC_KEY
from headgate.pipeline.time_span import Span

POINTS_SHOWN: Final = 2_000
"""Most grid points that a chart shows; the best ranked are kept."""

_SUMS: Final = (
    "seconds_over_quota", "parked_seconds", "activations", "evicted_bytes",
)  # fmt: skip
_MEANS: Final = ("drain_used", "censored_share", "score")
_COLUMNS: Final = ("grid_point", "name", "settings", *_SUMS, *_MEANS, "rank", "is_pareto")


@dataclass(frozen=True, slots=True)
class GridPoint:
    """One grid point, over all topics of the run."""

    number: int
    name: str
    settings: str
    """The settings in words."""
    topics: int
    seconds_over_quota: float
    parked_seconds: float
    drain_used: float | None
    """Mean over topics, 0 to 1."""
    censored_share: float | None
    """Mean over topics, 0 to 1: share of the samples in which a limit held producers all the
    time."""
    activations: int
    evicted_bytes: int
    score: float | None
    """Mean over topics."""
    rank: int | None
    is_pareto: bool


@dataclass(frozen=True, slots=True)
class BacktestRun:
    """One run in the folder."""

    run_id: str
    run_at: datetime | None
    topics: int
    count: int
    """Grid points of the run."""
    front: int
    """Grid points on the Pareto front."""
    points: tuple[GridPoint, ...]
    """The best ranked first, at most :data:`POINTS_SHOWN`."""


def newest_run(scan: TableScan) -> BacktestRun | None:
    """The newest run of ``policy_backtest``; None if there is none.

    The range of the page does not select runs, because each run has its own.
    """
    runs = run_names(scan)
    return run_of(scan, *runs[0]) if runs else None


def run_names(scan: TableScan) -> list[tuple[str, datetime | None]]:
    """The runs of ``policy_backtest`` with their times, the newest first."""
    runs = totals(scan.batches(("run_id", "run_at")), ("run_id",), [("run_at", "max")])
    if runs is None:
        return []
    ordered = runs.sort_by([("run_at_max", "descending"), ("run_id", "descending")])
    return [(row["run_id"], row["run_at_max"]) for row in ordered.to_pylist()]


def run_of(scan: TableScan, run_id: str, run_at: datetime | None) -> BacktestRun | None:
    """One run of ``policy_backtest``; None if it has no rows."""
    only = ("run_id", [run_id])
    points = totals(
        scan.batches(_COLUMNS, Span(), only),
        ("grid_point",),
        [
            *((name, "sum") for name in (*_SUMS, *_MEANS)),
            *((name, "count") for name in _MEANS),
            ("name", "max"),
            ("settings", "max"),
            ("rank", "min"),
            ("is_pareto", "max"),
            ("grid_point", "count"),
        ],
    )
    topics = totals(scan.batches(TOPIC_KEY, Span(), only), TOPIC_KEY, [("topic", "count")])
    if points is None or topics is None:
        return None
    ranked = sorted(
        map(_point, points.to_pylist()), key=lambda p: (p.rank is None, p.rank or 0, p.number)
    )
    return BacktestRun(
        run_id,
        run_at,
        topics.num_rows,
        len(ranked),
        sum(point.is_pareto for point in ranked),
        tuple(ranked[:POINTS_SHOWN]),
    )


def _point(row: dict[str, Any]) -> GridPoint:
    def mean(name: str) -> float | None:
        return row[f"{name}_sum"] / row[f"{name}_count"] if row[f"{name}_count"] else None

    return GridPoint(
        row["grid_point"],
        row["name_max"] or f"point {row['grid_point']}",
        readable_settings(row["settings_max"]),
        row["grid_point_count"],
        row["seconds_over_quota_sum"] or 0.0,
        row["parked_seconds_sum"] or 0.0,
        mean("drain_used"),
        mean("censored_share"),
        row["activations_sum"] or 0,
        row["evicted_bytes_sum"] or 0,
        mean("score"),
        row["rank_min"],
        bool(row["is_pareto_max"]),
    )
