"""Rows of ``quality``: the results of an hour's files, added up and compared between tables."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from headgate.pipeline.kernels.file_checks import CheckResult, FileChecks, added_up
from headgate.pipeline.tables.arrow_types import table_arrow_schema
from headgate.pipeline.tables.columns import Table, hour_partition
from headgate.pipeline.tables.expectations import Expectation, Rule, expectations, range_text
from headgate.pipeline.tables.quality import QUALITY
from headgate.pipeline.time_span import EPOCH


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """A file of an hour and its results; None: it was written by a release without checks."""

    kind: str | None
    """Its partition by kind, if the table has such."""
    checks: FileChecks | None


Files = Mapping[str, Sequence[CheckedFile]]
"""The live files of one hour by table."""


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """How the rows of a table met one expectation."""

    rows_checked: int = 0
    rows_failed: int = 0
    columns: str = ""
    """Columns that fail, separated by commas."""


Outcomes = Mapping[tuple[str, str], CheckOutcome]
"""By the names of the table and of the expectation."""


def outcomes(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], CheckOutcome]:
    """The outcome of each expectation, summed over rows of ``quality``."""
    found: dict[tuple[str, str], CheckOutcome] = {}
    for row in rows:
        key = (row["table_name"], row["expectation"])
        before = found.get(key, CheckOutcome())
        found[key] = CheckOutcome(
            before.rows_checked + row["rows_checked"],
            before.rows_failed + row["rows_failed"],
            row["failed_columns"] or before.columns,
        )
    return found


def quality_table(hours: Mapping[int, Files], tables: Iterable[Table]) -> pa.Table:
    """The rows of some hours, which are counted since the epoch, of all tables."""
    rows = [
        row
        for table in tables
        for hour, files in sorted(hours.items())
        for row in _rows(table, hour, files)
    ]
    return pa.Table.from_pylist(rows, table_arrow_schema(QUALITY))


def _rows(table: Table, hour: int, files: Files) -> Iterable[dict[str, Any]]:
    known = [each.checks for each in files.get(table.name, ()) if each.checks is not None]
    if not known:
        return
    results = added_up(known)
    for expectation in expectations(table):
        result = results.get(expectation.name)
        sentence = ""
        if expectation.rule is Rule.KEY and result is not None:
            result = _with_repeated_keys(result, files[table.name])
        elif expectation.rule is Rule.AGREEMENT:
            result, sentence = _agreement(expectation, table, files)
        if result is not None and result.checked:
            yield _row(table, hour, expectation, result, sentence)


def _with_repeated_keys(result: CheckResult, files: Sequence[CheckedFile]) -> CheckResult:
    """Adds keys that are in two files, as far as the samples of their footers show."""
    seen = Counter(
        (file.kind, key) for file in files if file.checks is not None for key in file.checks.keys
    )
    return replace(result, failed=result.failed + sum(count - 1 for count in seen.values()))


def _agreement(
    expectation: Expectation, table: Table, files: Files
) -> tuple[CheckResult | None, str]:
    """The comparison of two sums, in words, too; None if not all files were checked."""
    rule = expectation.agreement
    if rule is None:
        return None, ""
    others = [
        file
        for file in files.get(rule.of_table, ())
        if not rule.of_kinds or file.kind in rule.of_kinds
    ]
    own = _total(files[table.name], *rule.columns)
    other = _total(others, rule.of_column)
    if own is None or other is None:
        return None, ""
    of = rule.of_table + (f" (kind {', '.join(rule.of_kinds)})" if rule.of_kinds else "")
    begin = f"The sum of {' and '.join(rule.columns)} over the hour is {own:,} in {table.name}"
    if own == other:
        return CheckResult(1), f"{begin} and in {of}."
    sentence = f"{begin} and {other:,} in {of}."
    return CheckResult(1, 1, rule.columns), sentence


def _total(files: Iterable[CheckedFile], *columns: str) -> int | None:
    total = 0
    for file in files:
        if file.checks is None or not file.checks.totals.keys() >= {*columns}:
            return None
        total += sum(file.checks.totals[column] for column in columns)
    return total


def _row(
    table: Table, hour: int, expectation: Expectation, result: CheckResult, sentence: str
) -> dict[str, Any]:
    return {
        **hour_partition(hour),
        "hour_start": EPOCH + timedelta(hours=hour),
        "table_name": table.name,
        "expectation": expectation.name,
        "is_met": result.failed == 0,
        "rows_checked": result.checked,
        "rows_failed": result.failed,
        "failed_columns": ", ".join(_in_order(table, result)) or None,
        "example": None if result.example is None else json.dumps(result.example),
        "first_failed": _instant(result.first_us),
        "last_failed": _instant(result.last_us),
        "sentence": sentence or _sentence(table, expectation, result),
    }


def _in_order(table: Table, result: CheckResult) -> list[str]:
    """The columns that fail, in the table's order."""
    return [name for name in table.column_names() if name in result.columns]


def _instant(time_us: int | None) -> datetime | None:
    return None if time_us is None else EPOCH + timedelta(microseconds=time_us)


def _sentence(table: Table, expectation: Expectation, result: CheckResult) -> str:
    rows = f"{result.checked:,} rows of {table.name}"
    if result.failed == 0:
        return f"All {rows} are as expected."
    names = _in_order(table, result)
    if expectation.rule is Rule.RANGE:
        names = [f"{name} ({range_text(table.column(name))})" for name in names]
    which = ", ".join(names)
    what = {
        Rule.REQUIRED: f"have no value in {which}",
        Rule.RANGE: f"have a value out of range in {which}",
        Rule.VALUES: f"have an unknown value in {which}",
        Rule.KEY: "have the same key as another row",
        Rule.SUM: f"break the rule {expectation.text}",
    }[expectation.rule]
    return f"{result.failed:,} of {rows} {what}."
