"""Column types and columns, from which every table is made."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, Final

from headgate.base.units import NS_PER_HOUR, NS_PER_MINUTE, NS_PER_S
from headgate.record.fields import FIELDS, FieldType, Kind

MINUTE_NS: Final = NS_PER_MINUTE
HOUR_NS: Final = NS_PER_HOUR
DAY_HOURS: Final = 24
EPOCH: Final = date(1970, 1, 1)


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


@dataclass(frozen=True, slots=True)
class TableColumn:
    """One column; ``comment`` is its documentation."""

    name: str
    type: ColumnType
    comment: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """One table of a pipeline folder."""

    name: str
    columns: tuple[TableColumn, ...]
    partition_by: tuple[str, ...]
    statistics: tuple[str, ...]
    """Columns whose minimum and maximum each file records."""

    def column_names(self) -> tuple[str, ...]:
        """Names in table order."""
        return tuple(column.name for column in self.columns)


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


def record_columns(*kinds: Kind) -> tuple[TableColumn, ...]:
    """The telemetry fields of some kinds as columns, each name once."""
    columns: dict[str, TableColumn] = {}
    for kind in kinds:
        for field in FIELDS[kind]:
            unit = f" [{field.unit}]" if field.unit else ""
            columns.setdefault(
                field.name, TableColumn(field.name, _TYPES[field.type], field.meaning + unit)
            )
    return tuple(columns.values())


def hour_partition(hour: int) -> dict[str, Any]:
    """``date`` and ``hour`` of the partition of one hour, counted since the epoch."""
    start = datetime.fromtimestamp(hour * (HOUR_NS // NS_PER_S), UTC)
    return {"date": start.date(), "hour": start.hour}
