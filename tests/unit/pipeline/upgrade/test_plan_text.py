"""The plan in words: each step with what it costs."""

from __future__ import annotations

from headgate.pipeline.store.delta_log import TableFile
from headgate.pipeline.upgrade.plan import TablePlan
from headgate.pipeline.upgrade.plan_text import plan_lines


def file(hour: int) -> TableFile:
    place = {"date": "2026-11-21", "hour": str(hour)}
    return TableFile(f"{hour}.parquet", 2 << 20, place, 7, None)


def test_each_step_is_a_line() -> None:
    plans = [
        TablePlan("evictions", is_absent=True),
        TablePlan("episodes", columns=tuple("abcdefg")),
        TablePlan(
            "intervals",
            columns=("gaps",),
            recomputed=(file(1), file(2)),
            input_bytes=5 << 20,
            kept=(file(0),),
            small=(file(3), file(3), file(3)),
            merged=1,
        ),
        TablePlan("attribution", recomputed=(file(1),)),
        TablePlan("quota_usage"),
    ]
    assert [line.split(maxsplit=1) for line in plan_lines(plans)] == [
        ["evictions", "create the table"],
        ["episodes", "add 7 columns: a, b, c, d, e and 2 more"],
        ["intervals", "add 1 column: gaps"],
        ["intervals", "recompute 2 hours: replace 2 files (4.0 MiB), from 5.0 MiB of rows"],
        ["intervals", "merge 3 files (6.0 MiB) into 1"],
        [
            "intervals",
            "leave 1 file (2.0 MiB) without the columns: the telemetry of these hours is not there"
            " any more",
        ],
        ["attribution", "recompute 1 hour: replace 1 file (2.0 MiB), from 0.0 MiB of rows"],
        ["quota_usage", "up to date"],
    ]
