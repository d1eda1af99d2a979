"""Checks rows of a table against its expectations, batch by batch, while a file is written.

If all rows are as expected, a check costs a minimum, a maximum or a count of nulls for each
column. Only a failure makes masks of rows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.base.units import NS_PER_US
from headgate.pipeline.kernels.array_types import Flags, Longs
from headgate.pipeline.kernels.file_checks import KEYS_SAMPLED, CheckResult, FileChecks
from headgate.pipeline.kernels.key_hashes import SeenHashes, key_hashes
from headgate.pipeline.tables.catalogue import TABLES
from headgate.pipeline.tables.columns import TIME_COLUMNS, Sum, Table, TableColumn
from headgate.pipeline.tables.expectations import (
    Expectation,
    Rule,
    expectations,
    ranged_columns,
    totals_of,
)

_ROUNDING: Final = 1e-9
"""How far a floating-point number may be beyond its range."""

_Failure = tuple[int, Flags | None, tuple[str, ...]]
"""Rows checked; which of them fail, or None; the columns that fail."""


class RowChecks:
    """The checks of the rows of one file."""

    def __init__(self, table: Table, partition: Mapping[str, str]) -> None:
        """``partition``: columns that are the same in all rows, with their values as text."""
        self._table, self._partition = table, dict(partition)
        self._time = next((name for name in TIME_COLUMNS if name in table.column_names()), None)
        self._key = tuple(name for name in table.key if name not in self._partition)
        self._seen = SeenHashes()
        self._totals = totals_of(table, tuple(TABLES.values()))
        self._found = FileChecks()
        self._checks: dict[Rule, Callable[[pa.Table, Expectation], _Failure]] = {
            Rule.REQUIRED: self._required,
            Rule.RANGE: self._ranges,
            Rule.VALUES: self._values,
            Rule.KEY: self._unique,
            Rule.SUM: self._sum,
        }

    def add(self, rows: pa.Table) -> None:
        """Check some rows. They may lack columns of the table, which are then not checked."""
        for expectation in expectations(self._table):
            check = self._checks.get(expectation.rule)
            if check is None:
                continue
            checked, failing, columns = check(rows, expectation)
            result = self._result(rows, checked, failing, columns)
            results, name = self._found.results, expectation.name
            results[name] = results.get(name, CheckResult()) + result
        for name in self._totals:
            if name in rows.column_names:
                total = pc.sum(rows.column(name)).as_py() or 0
                self._found.totals[name] = self._found.totals.get(name, 0) + int(total)
        self._found.rows += rows.num_rows

    def finish(self) -> FileChecks:
        """The results of all rows."""
        self._found.keys = tuple(self._seen.smallest(KEYS_SAMPLED))
        return self._found

    def _result(
        self, rows: pa.Table, checked: int, failing: Flags | None, columns: tuple[str, ...]
    ) -> CheckResult:
        if failing is None or not failing.any():
            return CheckResult(checked)
        places = np.flatnonzero(failing)
        names = [name for name in self._key if name in rows.column_names]
        keys = rows.select(names).take(pa.array(places))
        (row,) = keys.sort_by([(name, "ascending") for name in names]).slice(0, 1).to_pylist()
        constant = {name: v for name, v in self._partition.items() if name in self._table.key}
        example = {name: _plain(value) for name, value in (constant | row).items()}
        times_us = self._times_us(rows, places)
        return CheckResult(
            checked,
            len(places),
            columns,
            json.loads(json.dumps(example)),
            None if times_us is None else pc.min(times_us).as_py(),
            None if times_us is None else pc.max(times_us).as_py(),
        )

    def _times_us(self, rows: pa.Table, places: Longs) -> Any:
        if self._time is None or self._time not in rows.column_names:
            return None
        column = rows.column(self._time).take(pa.array(places))
        if pa.types.is_timestamp(column.type):
            return column.cast(pa.int64())
        return pc.divide(column, NS_PER_US)

    def _required(self, rows: pa.Table, expectation: Expectation) -> _Failure:
        columns = _present(rows, expectation.columns)
        failing = {n: _flags(pc.is_null(c)) for n, c in columns.items() if c.null_count}
        return _any_of(rows, failing)

    def _ranges(self, rows: pa.Table, _: Expectation) -> _Failure:
        failing: dict[str, Flags] = {}
        have = {*rows.column_names}
        for column in ranged_columns(self._table):
            if column.name in have:
                values = rows.column(column.name)
                if values.null_count < rows.num_rows and not _is_within(column, values):
                    failing[column.name] = _beyond(column, values)
        return _any_of(rows, failing)

    def _values(self, rows: pa.Table, expectation: Expectation) -> _Failure:
        failing: dict[str, Flags] = {}
        for name, values in _present(rows, expectation.columns).items():
            allowed = self._table.column(name).values
            if not {*pc.unique(values).to_pylist()} <= {*allowed, None}:
                known = pc.is_in(values, value_set=pa.array([*allowed, None], pa.string()))
                failing[name] = ~_flags(known)
        return _any_of(rows, failing)

    def _unique(self, rows: pa.Table, _: Expectation) -> _Failure:
        if any(name not in rows.column_names for name in self._key):
            return 0, None, ()
        return rows.num_rows, self._seen.add(key_hashes(rows, self._key)), self._key

    def _sum(self, rows: pa.Table, expectation: Expectation) -> _Failure:
        rule = expectation.sum
        kind = self._partition.get("kind")
        if rule is None or (rule.kinds and kind not in rule.kinds):
            return 0, None, ()
        if len(_present(rows, expectation.columns)) < len({*expectation.columns}):
            return 0, None, ()
        excess = _excess(rows, rule)
        checked = rows.num_rows - excess.null_count
        wrong = pc.greater(excess, rule.tolerance)
        if not rule.is_at_most:
            wrong = pc.or_(wrong, pc.less(excess, -rule.tolerance))
        return checked, _flags(pc.fill_null(wrong, False)), expectation.columns


def _excess(rows: pa.Table, rule: Sum) -> Any:
    """By how much the sum of each row exceeds its total; null if a column is null."""
    excess = rows.column(rule.terms[0])
    for name in rule.terms[1:]:
        excess = pc.add(excess, rows.column(name))
    for name in rule.less:
        excess = pc.subtract(excess, rows.column(name))
    total = rows.column(rule.total) if isinstance(rule.total, str) else rule.total
    # Arrow refuses to compare a number beyond 53 bits with a tolerance: a span of 104 days in ns.
    return pc.cast(pc.subtract(excess, total), pa.float64(), safe=False)


def _is_within(column: TableColumn, values: Any) -> bool:
    """Whether all values of a column are within its range, by the least and the largest."""
    ends = pc.min_max(values).as_py()
    least, most = ends["min"], ends["max"]
    if pa.types.is_floating(values.type) and pc.any(pc.is_nan(values)).as_py():
        return False
    if least is None:
        return True
    return (column.least is None or least >= column.least - _ROUNDING) and (
        column.most is None or most <= column.most + _ROUNDING
    )


def _beyond(column: TableColumn, values: Any) -> Flags:
    numbers = pc.cast(values, pa.float64(), safe=False)
    numbers = np.asarray(pc.fill_null(numbers, column.least or column.most or 0.0))
    least = -np.inf if column.least is None else column.least - _ROUNDING
    most = np.inf if column.most is None else column.most + _ROUNDING
    return np.asarray(~((numbers >= least) & (numbers <= most)), np.bool_)


def _present(rows: pa.Table, names: tuple[str, ...]) -> dict[str, Any]:
    have = {*rows.column_names}
    return {name: rows.column(name) for name in names if name in have}


def _any_of(rows: pa.Table, failing: Mapping[str, Flags]) -> _Failure:
    if not failing:
        return rows.num_rows, None, ()
    return rows.num_rows, np.logical_or.reduce([*failing.values()]), tuple(failing)


def _flags(column: Any) -> Flags:
    return np.asarray(
        column.to_numpy(zero_copy_only=False)
        if isinstance(column, pa.Array)
        else column.combine_chunks().to_numpy(zero_copy_only=False),
        np.bool_,
    )


def _plain(value: Any) -> Any:
    """A value of a key as JSON has it."""
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return value.hex() if isinstance(value, bytes) else value
