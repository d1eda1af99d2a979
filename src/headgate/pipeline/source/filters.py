"""Spark's filters as conditions that select files, row groups and rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyspark.sql import datasource as spark

from headgate.base.units import NS_PER_US
from headgate.pipeline.source.snapshot import Bounds
from headgate.pipeline.store.delta_log import TableFile
from headgate.pipeline.tables.arrow_types import table_arrow_schema
from headgate.pipeline.tables.columns import HOUR_NS, MINUTE_NS, TIME_COLUMNS, ColumnType, Table
from headgate.pipeline.time_span import EPOCH, Span

_OPERATORS: Final[dict[type[spark.Filter], str]] = {
    spark.EqualTo: "==",
    spark.LessThan: "<",
    spark.LessThanOrEqual: "<=",
    spark.GreaterThan: ">",
    spark.GreaterThanOrEqual: ">=",
    spark.In: "in",
    spark.StringStartsWith: "starts",
    spark.StringEndsWith: "ends",
    spark.StringContains: "contains",
    spark.IsNull: "is null",
    spark.IsNotNull: "is not null",
}
_OF_NULLS: Final = ("is null", "is not null")
_NOT_COMPARED: Final = (ColumnType.DOUBLE, ColumnType.BINARY, ColumnType.DOUBLES)
"""Types whose comparisons stay with Spark: for it NaN equals NaN and exceeds all numbers."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A comparison of a column with a value. Spark sends it to the workers."""

    column: str
    operator: str
    value: Any = None
    """A list for ``in``; None for those of nulls."""
    is_negated: bool = False

    def expression(self, schema: pa.Schema) -> Any:
        """It as a filter of pyarrow. Rows with null pass only those of nulls, as in Spark."""
        field, kind = ds.field(self.column), schema.field(self.column).type
        made = _expression(field, self.operator, self.value, kind)
        if not self.is_negated:
            return made
        # For pyarrow a null is in no list; for Spark nobody knows.
        return ~made & field.is_valid() if self.operator == "in" else ~made

    def may_pass(self, bounds: Mapping[str, Bounds]) -> bool:
        """Whether a row of a file with these bounds may pass."""
        if self.column not in bounds:
            return True
        low, high = bounds[self.column]
        if self.is_negated:
            return not (self.operator == "==" and low == high == self.value)
        match self.operator:
            case "==":
                return bool(low <= self.value <= high)
            case "in":
                return any(low <= value <= high for value in self.value)
            case "<":
                return bool(low < self.value)
            case "<=":
                return bool(low <= self.value)
            case ">":
                return bool(high > self.value)
            case ">=":
                return bool(high >= self.value)
        return True


def _expression(field: Any, operator: str, value: Any, kind: pa.DataType) -> Any:
    if operator in _OF_NULLS:
        return field.is_null() if operator == "is null" else field.is_valid()
    if operator == "in":
        return field.isin(pa.array(value, kind))
    if operator in ("starts", "ends", "contains"):
        function = {
            "starts": pc.starts_with,
            "ends": pc.ends_with,
            "contains": pc.match_substring,
        }[operator]
        return function(field, value)
    scalar = pa.scalar(value, kind)
    return {
        "==": field == scalar,
        "<": field < scalar,
        "<=": field <= scalar,
        ">": field > scalar,
        ">=": field >= scalar,
    }[operator]


def take_filters(
    table: Table, filters: Iterable[spark.Filter]
) -> tuple[list[Condition], list[spark.Filter]]:
    """The conditions that the reader applies, and the filters that it leaves to Spark."""
    conditions, left = [], []
    for found in filters:
        condition = _condition(table, found)
        if condition is None:
            left.append(found)
        else:
            conditions.append(condition)
    return conditions, left


def _condition(table: Table, found: spark.Filter) -> Condition | None:
    is_negated = isinstance(found, spark.Not)
    inner: Any = found.child if isinstance(found, spark.Not) else found
    operator = _OPERATORS.get(type(inner))
    if operator is None or len(inner.attribute) != 1:
        return None
    types = {column.name: column.type for column in table.columns}
    name = inner.attribute[0]
    if name not in types:
        return None
    if operator in _OF_NULLS:
        return Condition(name, operator, None, is_negated)
    if types[name] in _NOT_COMPARED:
        return None
    value = inner.value
    if operator == "in":
        # A null in the list never lets a row pass; in a negated list it lets none pass.
        values = [_utc(each) for each in value if each is not None]
        if not values or (is_negated and len(values) < len(value)):
            return None
        return Condition(name, operator, values, is_negated)
    return None if value is None else Condition(name, operator, _utc(value), is_negated)


def _utc(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    return value


def range_conditions(table: Table, span: Span, kinds: Sequence[str]) -> list[Condition]:
    """Conditions for rows of a time range, by whole minutes, and of some kinds; empty: all."""
    found = [Condition("kind", "in", list(kinds))] if kinds else []
    types = {column.name: column.type for column in table.columns}
    column = next((name for name in TIME_COLUMNS if name in types), None)
    if column is None:
        return found
    # A minute or an hour that only touches the range is in it.
    slack_ns = TIME_COLUMNS[column] - 1
    if span.since_ns is not None:
        since = _instant(span.since_ns - slack_ns, types[column])
        found.append(Condition(column, ">=", since))
    if span.until_ns is not None:
        found.append(Condition(column, "<", _instant(span.until_ns, types[column])))
    return found


def _instant(time_ns: int, kind: ColumnType) -> Any:
    if kind is not ColumnType.TIMESTAMP:
        return time_ns
    # Rounded up: a row at the microsecond before is outside.
    return EPOCH + timedelta(microseconds=-(-time_ns // NS_PER_US))


def is_within(file: TableFile, span: Span) -> bool:
    """Whether a file, by its hour, may have rows of a range; true without hours."""
    if "hour" not in file.partition:
        return True
    first_ns, end_ns = file.hour * HOUR_NS, (file.hour + 1) * HOUR_NS
    # A minute that touches the range may begin in the hour before it.
    is_late = span.since_ns is None or end_ns > span.since_ns - MINUTE_NS
    return is_late and (span.until_ns is None or first_ns <= span.until_ns + MINUTE_NS)


def combined(conditions: Sequence[Condition], table: Table) -> Any:
    """All conditions as one filter of pyarrow; None without any."""
    whole = None
    for condition in conditions:
        expression = condition.expression(table_arrow_schema(table))
        whole = expression if whole is None else whole & expression
    return whole
