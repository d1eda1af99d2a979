"""The report's section about ``quality``: which rows of the range are not as declared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from headgate.pipeline.report.sections import ROWS_SHOWN, Section, TableView
from headgate.pipeline.store.scan import TableScan
from headgate.pipeline.tables.quality import QUALITY
from headgate.pipeline.time_span import Span

_COLUMNS: Final = (
    "hour_start", "table_name", "expectation", "is_met", "rows_checked", "rows_failed",
    "failed_columns", "example", "sentence",
)  # fmt: skip
ANCHOR: Final = "checks"
TITLE: Final = "Checks of the tables"


@dataclass(frozen=True, slots=True)
class UnmetExpectation:
    """An expectation of one table that is not met in some hours of a range."""

    table: str
    name: str
    hours: int
    rows_failed: int
    rows_checked: int
    """In these hours."""
    newest: Mapping[str, Any]
    """The row of ``quality`` of the last of these hours."""


@dataclass(frozen=True, slots=True)
class TableChecks:
    """The checks of a range."""

    hours: int = 0
    tables: int = 0
    checks: int = 0
    """Expectations, summed over tables and hours."""
    unmet: tuple[UnmetExpectation, ...] = ()
    """Those with the most failed rows first."""


def table_checks(quality: TableScan | None, span: Span) -> TableChecks | None:
    """Read ``quality``; None without the table, or without a row of the range."""
    if quality is None:
        return None
    rows = quality.rows(_COLUMNS, span)
    if not rows.num_rows:
        return None
    failed: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows.to_pylist():
        if not row["is_met"]:
            failed.setdefault((row["table_name"], row["expectation"]), []).append(row)
    unmet = [
        UnmetExpectation(
            table,
            name,
            len(found),
            sum(row["rows_failed"] for row in found),
            sum(row["rows_checked"] for row in found),
            max(found, key=lambda row: row["hour_start"]),
        )
        for (table, name), found in failed.items()
    ]
    unmet.sort(key=lambda each: (-each.rows_failed, each.table, each.name))
    hours, tables = (len(rows[name].unique()) for name in ("hour_start", "table_name"))
    return TableChecks(hours, tables, rows.num_rows, tuple(unmet))


def check_section(found: TableChecks | None) -> Section:
    """All expectations that are not met, or the sentence that all are."""
    if found is None:
        return Section(
            ANCHOR, TITLE,
            f"The table {QUALITY.name} has no row of this range: its files were written by a"
            " release without checks.",
        )  # fmt: skip
    lead = f"{_counted(found.checks, 'check')} of {_counted(found.tables, 'table')} in "
    lead += f"{_counted(found.hours, 'hour')}: "
    if not found.unmet:
        return Section(ANCHOR, TITLE, f"{lead}all rows are as declared.")
    return Section(
        ANCHOR,
        TITLE,
        f"{lead}{unmet_text(found)}.",
        table=TableView(
            ("table", "expectation", "rows failed", "of", "hours", "last", "what", "example"),
            tuple(_cells(each) for each in found.unmet[:ROWS_SHOWN]),
            frozenset({2, 3, 4}),
        ),
        note="The numbers are those of the hours in which the expectation is not met; what and "
        "example are those of the last one.",
    )


def unmet_text(found: TableChecks) -> str:
    """``2 expectations are not met``."""
    verb = "is" if len(found.unmet) == 1 else "are"
    return f"{_counted(len(found.unmet), 'expectation')} {verb} not met"


def _cells(each: UnmetExpectation) -> tuple[str, ...]:
    return (
        each.table,
        each.name,
        f"{each.rows_failed:,}",
        f"{each.rows_checked:,}",
        f"{each.hours:,}",
        f"{each.newest['hour_start']:%Y-%m-%dT%H:%MZ}",
        each.newest["sentence"],
        each.newest["example"] or "",
    )


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
