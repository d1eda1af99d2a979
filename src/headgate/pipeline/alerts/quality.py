"""Alerts about tables whose rows are not as declared, from the table ``quality`` if it is there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from headgate.base.units import NS_PER_US
from headgate.pipeline.alerts.alert import WARNING, Alert, named
from headgate.pipeline.store.scan import TableScan, existing_tables
from headgate.pipeline.tables.columns import HOUR_NS
from headgate.pipeline.time_span import Span, instant, since_epoch_us

ALERTNAME: Final = "HeadgateDataQuality"

TABLE: Final = "quality"

RECENT_HOURS: Final = 24
"""A fault of the tables is an alert while one of so many newest hours has it."""

_COLUMNS: Final = ("hour_start", "table_name", "expectation", "rows_failed", "sentence")

Row = Mapping[str, Any]


def quality_alerts(root: str, now_ns: int) -> list[Alert]:
    """An alert for each table and expectation that rows of the newest hours do not meet."""
    if TABLE not in existing_tables(root):
        return []
    scan = TableScan(root, TABLE)
    last_hour = max((file.hour for file in scan.files), default=0)
    span = Span(max(0, last_hour - RECENT_HOURS + 1) * HOUR_NS)
    failing: dict[tuple[str, str], list[Row]] = {}
    for batch in scan.batches(_COLUMNS, span):
        for row in batch.to_pylist():
            if (row["rows_failed"] or 0) > 0 and _hour_ns(row) >= (span.since_ns or 0):
                failing.setdefault((row["table_name"], row["expectation"]), []).append(row)
    return [_alert(rows, now_ns) for rows in failing.values()]


def _hour_ns(row: Row) -> int:
    return since_epoch_us(row["hour_start"]) * NS_PER_US


def _alert(rows: list[Row], now_ns: int) -> Alert:
    rows = sorted(rows, key=_hour_ns)
    newest = rows[-1]
    count = sum(row["rows_failed"] for row in rows)
    noun = "row does" if count == 1 else "rows do"
    table, expectation = newest["table_name"], newest["expectation"]
    return Alert(
        named(ALERTNAME, WARNING, table=table, expectation=expectation),
        {
            "summary": f"{count:,} {noun} not meet {expectation} of {table}",
            "description": (
                newest["sentence"]
                or f"The newest hour with such rows begins at {instant(_hour_ns(newest))}."
            ),
        },
        _hour_ns(rows[0]),
        now_ns,
        float(count),
        section="quality",
    )
