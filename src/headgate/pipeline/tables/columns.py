"""Column types and columns, from which every table is made."""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import Any, Final

from headgate.base.units import NS_PER_HOUR, NS_PER_MINUTE, NS_PER_S
from headgate.record.fields import FIELDS, Field, FieldType, Kind, Nature

MINUTE_NS: Final = NS_PER_MINUTE
HOUR_NS: Final = NS_PER_HOUR
DAY_HOURS: Final = 24
EPOCH: Final = date(1970, 1, 1)


TIME_COLUMNS: Final = {
    "minute": MINUTE_NS,
    "time": 1,
    "window_end": 1,
    "publish_time": 1,
    "segment_start_ns": 1,
    "run_at": 1,
    "hour_start": HOUR_NS,
}
"""Columns with the time of a row, and how long it lasts; the first that a table has counts."""


class ColumnType(enum.Enum):
    """Column types that Spark, Arrow, Delta and DuckDB share."""

    STRING = "string"
    LONG = "long"
    INT = "int"
    DOUBLE = "double"
    BOOLEAN = "boolean"
    TIMESTAMP = "timestamp"
    DATE = "date"
    BINARY = "binary"
    DOUBLES = "array<double>"


NS: Final = "ns"
EPOCH_NS: Final = "ns since the epoch"
"""Units of durations and of instants."""
SHARE: Final = "share"
"""Unit of a part of a whole, from 0 to 1."""


@dataclass(frozen=True, slots=True)
class TableColumn:
    """One column: its type, its meaning, and what its values are."""

    name: str
    type: ColumnType
    comment: str = ""
    """Its meaning."""
    unit: str = ""
    """``ns``, ``bytes``, ``messages`` and so on; empty for a text or a plain number."""
    is_required: bool = False
    """Whether it has a value in every row."""
    least: float | None = None
    """Least allowed value; None: any."""
    most: float | None = None
    """Largest allowed value; None: any."""
    values: tuple[str, ...] = ()
    """The allowed texts; empty: any."""
    json_fields: tuple[tuple[str, ColumnType], ...] | None = None
    """Of a text with a JSON array: the fields of its objects. Without any it is one JSON object
    whose fields differ from row to row. None: it is no JSON."""

    @property
    def documentation(self) -> str:
        """Its meaning, with its unit."""
        return f"{self.comment} [{self.unit}]" if self.unit else self.comment


def required(*columns: TableColumn) -> tuple[TableColumn, ...]:
    """The same columns, with a value in every row."""
    return tuple(replace(column, is_required=True) for column in columns)


@dataclass(frozen=True, slots=True)
class Sum:
    """Columns of a row that must add up to another one; a row with a null in them is left out."""

    name: str
    """Names the rule in ``quality``: ``shares_add_up``."""
    terms: tuple[str, ...]
    total: str | float
    """A column or a number."""
    less: tuple[str, ...] = ()
    """Columns that are subtracted."""
    tolerance: float = 0.0
    is_at_most: bool = False
    """Whether the sum may also be smaller."""
    kinds: tuple[str, ...] = ()
    """Of a table with partitions by kind: the kinds that it holds for; empty: all."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Columns whose sum over an hour must equal that of a column of another table."""

    column: str
    of_table: str
    """The name of the other table."""
    of_column: str
    of_kinds: tuple[str, ...] = ()
    """Of the other table: the kinds that are summed; empty: all."""
    more: tuple[str, ...] = ()
    """Further columns, whose sums are added to that of ``column``."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are summed."""
        return (self.column, *self.more)


@dataclass(frozen=True, slots=True)
class Table:
    """The contract of one table of a pipeline folder.

    The reference, the Arrow and Spark schemas, the expectations of ``quality``, the types in SQL
    and the lineage follow from it.
    """

    name: str
    columns: tuple[TableColumn, ...]
    partition_by: tuple[str, ...]
    statistics: tuple[str, ...]
    """Columns whose minimum and maximum each file records."""
    meaning: str = ""
    """What a row is."""
    key: tuple[str, ...] = ()
    """The columns that identify a row; a column may be null in a key."""
    is_key_unique: bool = True
    """Whether no two rows have the same key. Bronze may hold a message twice."""
    follows_from: tuple[str, ...] = ()
    """Names of the tables that it is computed from, its source first; empty: from telemetry."""
    sums: tuple[Sum, ...] = ()
    agreements: tuple[Agreement, ...] = ()

    def column_names(self) -> tuple[str, ...]:
        """Names in table order."""
        return tuple(column.name for column in self.columns)

    def column(self, name: str) -> TableColumn:
        """A column by its name.

        Raises:
            KeyError: there is none.
        """
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)


_TYPES: Final = {
    FieldType.STRING: ColumnType.STRING,
    FieldType.INT64: ColumnType.LONG,
    FieldType.DOUBLE: ColumnType.DOUBLE,
    FieldType.BOOL: ColumnType.BOOLEAN,
}

STRING, LONG, DOUBLE = ColumnType.STRING, ColumnType.LONG, ColumnType.DOUBLE

PARTITION: Final = (
    TableColumn("date", ColumnType.DATE, "UTC date of the row's last nanosecond."),
    TableColumn("hour", ColumnType.INT, "UTC hour of the row's last nanosecond, 0 to 23."),
)
KIND: Final = TableColumn("kind", STRING, "subscription, topic or limiter; in bronze also batch.")
MINUTE_COLUMN: Final = TableColumn(
    "minute", ColumnType.TIMESTAMP, "Start of the minute.", is_required=True
)


def record_columns(*kinds: Kind) -> tuple[TableColumn, ...]:
    """The telemetry fields of some kinds as columns, each name once."""
    columns: dict[str, TableColumn] = {}
    for kind in kinds:
        for field in FIELDS[kind]:
            columns.setdefault(field.name, _record_column(field))
    return tuple(columns.values())


def _record_column(field: Field) -> TableColumn:
    """A field as a column: amounts and levels are not negative, and spans are instants."""
    is_amount = field.nature in (Nature.CUMULATIVE, Nature.LEVEL)
    return TableColumn(
        field.name,
        _TYPES[field.type],
        field.meaning,
        EPOCH_NS if field.nature is Nature.SPAN and field.unit == NS else field.unit,
        least=0 if is_amount and field.type in (FieldType.INT64, FieldType.DOUBLE) else None,
    )


def hour_partition(hour: int) -> dict[str, Any]:
    """``date`` and ``hour`` of the partition of one hour, counted since the epoch."""
    start = datetime.fromtimestamp(hour * (HOUR_NS // NS_PER_S), UTC)
    return {"date": start.date(), "hour": start.hour}
