"""Scans read only the files of a range, also in older folders."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from headgate.base.errors import InputError
from headgate.pipeline.store.scan import TableScan, existing_tables
from headgate.pipeline.tables.columns import HOUR_NS, MINUTE_NS
from headgate.pipeline.time_span import Span
from tests.unit.pipeline.play import T0
from tests.unit.pipeline.report.folder import backtest_row, eviction_row, quota_row, write


def test_only_files_of_the_range_are_opened(tmp_path: Path) -> None:
    write(tmp_path, "quota_usage", [quota_row(place) for place in range(0, 300, 30)])
    scan = TableScan(str(tmp_path), "quota_usage")
    assert scan.row_count == 10
    # What is not opened may as well be gone.
    for file in scan.files:
        if file.hour != T0 // HOUR_NS + 2:
            (tmp_path / "quota_usage" / file.path).unlink()
    span = Span(T0 + 2 * HOUR_NS + 5 * MINUTE_NS, T0 + 3 * HOUR_NS - 2 * MINUTE_NS)
    rows = scan.rows(("minute", "hour"), span)
    assert rows.to_pylist() == [
        {"minute": datetime(2025, 11, 21, 12, 30, tzinfo=UTC), "hour": 12},
    ]


def test_minutes_that_touch_the_range_are_in_it(tmp_path: Path) -> None:
    write(tmp_path, "quota_usage", [quota_row(place) for place in range(3)])
    scan = TableScan(str(tmp_path), "quota_usage")
    assert scan.rows(("minute",), Span(T0 + MINUTE_NS, T0 + 2 * MINUTE_NS)).num_rows == 1
    assert scan.rows(("minute",), Span(T0 + MINUTE_NS - 1, T0 + 2 * MINUTE_NS + 1)).num_rows == 3


def test_events_are_filtered_by_their_instant(tmp_path: Path) -> None:
    write(tmp_path, "evictions", [eviction_row(place) for place in range(3)])
    scan = TableScan(str(tmp_path), "evictions")
    assert scan.rows(("time_ns",), Span(T0 + 1, T0 + 2 * MINUTE_NS)).num_rows == 1
    assert scan.span() == Span(T0, T0 + 2 * MINUTE_NS + 1)


def test_the_log_knows_the_span(tmp_path: Path) -> None:
    write(tmp_path, "quota_usage", [quota_row(place) for place in (0, 4, 130)])
    assert TableScan(str(tmp_path), "quota_usage").span() == Span(T0, T0 + 131 * MINUTE_NS)


def test_a_column_of_a_later_version_is_null_and_has_its_type(tmp_path: Path) -> None:
    row = {k: v for k, v in quota_row(0).items() if k != "held_seconds"}
    write(tmp_path, "quota_usage", [row])
    rows = TableScan(str(tmp_path), "quota_usage").rows(("held_seconds", "unheard_of", "topic"))
    assert rows.column_names == ["held_seconds", "unheard_of", "topic"]
    assert rows["held_seconds"].type == pa.float64()
    assert rows["held_seconds"].null_count == rows["unheard_of"].null_count == 1


def test_tables_without_hours_are_read_whole(tmp_path: Path) -> None:
    write(tmp_path, "policy_backtest", [backtest_row(1), backtest_row(1, "r2")], ("run_id",))
    scan = TableScan(str(tmp_path), "policy_backtest")
    assert scan.rows(("grid_point",), Span(), ("run_id", ["r2"])).num_rows == 1


def test_an_invalid_folder_of_tables_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no tables of this pipeline"):
        existing_tables(str(tmp_path))
    with pytest.raises(InputError, match=r"no folder .*none yet .* headgate pipeline run --out"):
        existing_tables(str(tmp_path / "none"))
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="file cannot be read: Not a directory"):
        existing_tables(str(tmp_path / "file"))
    write(tmp_path, "quota_usage", [quota_row(0)], layout=99)
    assert existing_tables(str(tmp_path)) == ("quota_usage",)
    with pytest.raises(InputError, match="layout 99; this version reads and writes 1"):
        TableScan(str(tmp_path), "quota_usage")
    with pytest.raises(InputError, match="has no table evictions"):
        TableScan(str(tmp_path), "evictions")
