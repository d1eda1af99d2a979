"""The order of forecasts and the rows of scores, without Spark."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headgate.pipeline.kernels.forecast_score import Score
from headgate.pipeline.queries.forecast_rows import (
    SILENT_HOURS_MAX,
    ForecastScores,
    _row,
    _soonest,
    clusters_behind,
    newest_hours,
)
from headgate.pipeline.store.scan import TableScan
from headgate.pipeline.tables.arrow_types import partition_columns
from headgate.pipeline.tables.bronze import BATCH_KIND
from headgate.pipeline.tables.columns import HOUR_NS
from headgate.pipeline.tables.quotas import QUOTA_USAGE
from tests.unit.pipeline.play import T0
from tests.unit.pipeline.report.folder import write

AT = datetime(2025, 11, 21, 10, 6, tzinfo=UTC)


def usage(**values: Any) -> dict[str, Any]:
    """A row of ``quota_usage`` with a size quota, half full."""
    return {
        **dict.fromkeys(QUOTA_USAGE.column_names()),
        "topic": "persistent://acme/ns/t",
        "forecast_at": AT,
        "size_limit_bytes": 100,
        "size_policy": "producer_request_hold",
        "size_source": "topic policy",
        "size_use": 0.5,
        "method": "none",
        **values,
    }


def test_rows_are_ordered_by_reached_likely_and_possible_breaches() -> None:
    rows = [
        usage(topic="likely later", seconds_to_breach=500.0, seconds_to_breach_earliest=0.0),
        usage(topic="fuller", size_use=0.6),
        usage(topic="reached", seconds_to_breach=0.0),
        usage(topic="idle"),
        usage(topic="possible", seconds_to_breach_earliest=10.0),
        # Its seconds run from a minute before.
        usage(topic="likely", seconds_to_breach=501.0, forecast_at=AT - timedelta(minutes=1)),
    ]
    found = sorted(map(_row, rows), key=_soonest)
    assert [row["topic"] for row in found] == [
        "reached", "likely", "likely later", "possible", "fuller", "idle",
    ]  # fmt: skip


def test_a_cluster_is_behind_relative_to_the_others() -> None:
    ahead = [{"cluster": "a", "minute": AT + timedelta(minutes=step)} for step in (0, 9, 30)]
    assert clusters_behind(ahead) == clusters_behind([]) == {}
    late = [{"cluster": None, "minute": AT + timedelta(minutes=step)} for step in (7, 20)]
    assert clusters_behind([*ahead, *late]) == {"": AT + timedelta(minutes=20)}
    near = [{"cluster": "b", "minute": AT + timedelta(minutes=21)}]
    assert clusters_behind([*ahead, *near]) == {}


def heard(cluster: str, end_ns: int, kind: str = BATCH_KIND) -> dict[str, Any]:
    place = partition_columns(np.array([end_ns - 1]))
    return {
        **{name: values[0].as_py() for name, values in place.items()},
        "kind": kind,
        "cluster": cluster,
        "window_end": datetime.fromtimestamp(end_ns / 10**9, UTC),
        "window_end_ns": end_ns,
    }


def test_each_cluster_has_its_own_newest_hour(tmp_path: Path) -> None:
    rows = [heard("a", T0 + hour * HOUR_NS) for hour in (1, 5, 30)]
    rows += [heard("b", T0 + HOUR_NS + 1), heard("b", T0 + 90 * HOUR_NS, "topic")]
    write(tmp_path, "bronze_samples", rows, ("date", "hour", "kind"))
    first = T0 // HOUR_NS
    assert newest_hours(str(tmp_path), None) == {first + 29, first + 1}
    assert newest_hours(str(tmp_path), T0 + 5 * HOUR_NS) == {first + 4, first + 1}
    assert newest_hours(str(tmp_path), T0) == set()


def test_a_cluster_that_is_silent_for_a_month_is_not_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows of all time were read, for each forecast."""
    read: list[Path] = []
    scanned = TableScan._batches_of

    def noting(scan: TableScan, wanted: list[str], *given: Any) -> Any:
        read.extend(Path(path) for path in wanted)
        return scanned(scan, wanted, *given)

    monkeypatch.setattr(TableScan, "_batches_of", noting)
    ends_ns = {
        "gone": T0,
        "silent": T0 + 2 * HOUR_NS,
        "here": T0 + (SILENT_HOURS_MAX + 1) * HOUR_NS,
    }
    rows = [heard(name, end_ns) for name, end_ns in ends_ns.items()]
    write(tmp_path, "bronze_samples", rows, ("date", "hour", "kind"))
    wanted = {(ends_ns[name] - 1) // HOUR_NS for name in ("silent", "here")}
    assert newest_hours(str(tmp_path), None) == wanted
    assert len(read) == 2


def test_a_row_has_the_first_breached_or_else_the_fuller_quota() -> None:
    both = {
        "partition": 3,
        "time_limit_ns": 7,
        "time_policy": "consumer_backlog_eviction",
        "time_use": 0.4,
        "oldest_subscription": "audit",
    }
    row = _row(usage(**both))
    assert (row["topic"], row["quota"]) == ("persistent://acme/ns/t-partition-3", "size")
    assert (row["limit"], row["use"], row["source"]) == (100, 0.5, "topic policy")
    assert (row["then"], row["likely_at"]) == ("producers held", None)
    row = _row(usage(**both, breach_quota="time", seconds_to_breach=90.0))
    assert (row["quota"], row["limit"], row["use"]) == ("time", 7, 0.4)
    assert row["then"] == "subscription audit loses its oldest messages"
    assert row["likely_at"] == AT + timedelta(seconds=90)
    row = _row(usage(size_limit_bytes=0, size_use=None, breach_quota="size"))
    assert (row["limit"], row["use"]) == (0, None)


def test_scores_have_a_total_and_one_row_per_topic() -> None:
    one, other = Score(forecasts=2, levels=2, levels_covered=1), Score(forecasts=1)
    key = {"cluster": "c", "topic": "t", "partition": None, "incarnation": 1, "quota": "size"}
    rows = ForecastScores(one + other, ((key, one), ({**key, "partition": 1}, other))).rows()
    assert [(row["topic"], row["forecasts"]) for row in rows] == [
        (None, 3), ("t", 2), ("t-partition-1", 1),
    ]  # fmt: skip
    assert [row["level_coverage"] for row in rows] == [0.5, 0.5, None]
    assert [row["quota"] for row in rows] == [None, "size", "size"]
