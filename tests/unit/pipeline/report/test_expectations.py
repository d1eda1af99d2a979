"""The report lists which expectations are not met, over the hours of its range."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from headgate.base.units import NS_PER_HOUR, NS_PER_S
from headgate.pipeline.report.expectations import check_section, table_checks, unmet_text
from headgate.pipeline.store.scan import TableScan
from headgate.pipeline.time_span import EVERYTHING, Span
from tests.unit.pipeline.report.folder import write

START = datetime(2026, 11, 24, 10, tzinfo=UTC)
START_NS = int(START.timestamp()) * NS_PER_S


def row(hour: int, expectation: str, failed: int = 0, table: str = "attribution") -> dict[str, Any]:
    return {
        "date": START.date(), "hour": hour, "hour_start": START.replace(hour=hour),
        "table_name": table, "expectation": expectation, "is_met": failed == 0,
        "rows_checked": 100, "rows_failed": failed, "failed_columns": "a" if failed else None,
        "example": f'{{"hour": {hour}}}' if failed else None, "sentence": f"{failed} failed.",
    }  # fmt: skip


def test_unmet_expectations_are_summed_over_hours(tmp_path: Path) -> None:
    rows = [
        row(10, "unique_key", 1), row(11, "unique_key", 2), row(11, "known_values", 9, "episodes"),
        row(12, "unique_key"), row(12, "known_values", 0, "episodes"),
    ]  # fmt: skip
    write(tmp_path, "quality", rows)
    found = table_checks(TableScan(str(tmp_path), "quality"), EVERYTHING)
    assert found is not None
    assert unmet_text(found) == "2 expectations are not met"
    section = check_section(found)
    assert section.lead == ("5 checks of 2 tables in 3 hours: 2 expectations are not met.")
    assert section.table is not None
    assert section.table.rows == (
        ("episodes", "known_values", "9", "100", "1", "2026-11-24T11:00Z", "9 failed.",
         '{"hour": 11}'),
        ("attribution", "unique_key", "3", "200", "2", "2026-11-24T11:00Z", "2 failed.",
         '{"hour": 11}'),
    )  # fmt: skip


def test_only_hours_that_the_range_touches_count(tmp_path: Path) -> None:
    write(tmp_path, "quality", [row(10, "unique_key", 1), row(12, "unique_key")])
    scan = TableScan(str(tmp_path), "quality")
    half = NS_PER_HOUR // 2
    late = table_checks(scan, Span(START_NS + 2 * NS_PER_HOUR + half, None))
    assert late is not None
    assert check_section(late).lead == "1 check of 1 table in 1 hour: all rows are as declared."
    early = table_checks(scan, Span(START_NS + half, START_NS + NS_PER_HOUR))
    assert early is not None
    assert unmet_text(early) == "1 expectation is not met"


def test_without_rows(tmp_path: Path) -> None:
    assert table_checks(None, EVERYTHING) is None
    write(tmp_path, "quality", [row(10, "unique_key")])
    scan = TableScan(str(tmp_path), "quality")
    assert table_checks(scan, Span(START_NS + 5 * NS_PER_HOUR, None)) is None
    assert "no row of this range" in check_section(None).lead
