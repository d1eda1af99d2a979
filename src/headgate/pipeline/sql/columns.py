"""The columns of a table as queries see them, with types for charts and reports.

Each nanosecond column has a companion: an instant a timestamp ``*_time``, a duration a double
``*_s``. JSON text becomes an array of structs, or a map.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from headgate.pipeline.sql.dialect import Dialect, JsonFields
from headgate.pipeline.tables.catalogue import TABLES
from headgate.pipeline.tables.columns import EPOCH_NS, Table, TableColumn
from headgate.pipeline.tables.episodes import EPISODE_COLUMNS

_NS: Final = "_ns"

_COLUMNS: Final = tuple(
    (table.name, column) for table in TABLES.values() for column in table.columns
)

INSTANTS: Final = frozenset(
    column.name
    for column in (*(column for _, column in _COLUMNS), *EPISODE_COLUMNS)
    if column.unit == EPOCH_NS
)
"""Nanosecond columns that count since the epoch; the others are durations."""

JSON_ARRAYS: Final[dict[tuple[str, str], JsonFields]] = {
    (table, column.name): dict(column.json_fields)
    for table, column in _COLUMNS
    if column.json_fields
}
"""Columns with a JSON array of objects, by table, with the fields of the objects."""

JSON_OBJECTS: Final = frozenset(
    (table, column.name) for table, column in _COLUMNS if column.json_fields == ()
)
"""Columns with a JSON object whose fields differ from row to row."""


def typed_columns(
    table: Table, dialect: Dialect, present: Collection[str] | None = None
) -> list[tuple[str, str]]:
    """Pairs of a name and an expression over the rows of a table, in the table's order.

    ``present``: the columns that the rows have, for a folder of an earlier version: the others are
    null. None: all.
    """
    names = table.column_names()
    found: list[tuple[str, str]] = []
    for column in table.columns:
        is_there = present is None or column.name in present
        value = dialect.name_of(column.name) if is_there else dialect.null(column.type)
        found.append((column.name, _value(table, column, dialect, value)))
        companion = companion_name(column.name)
        if companion is not None and companion not in names:
            found.append((companion, _companion(column.name, dialect, value)))
    return found


def companion_name(name: str) -> str | None:
    """The name of the typed companion of a nanosecond column; None for any other column.

    An instant whose timestamp the table has, as ``window_end`` beside ``window_end_ns``, has none.
    """
    if not name.endswith(_NS):
        return None
    stem = name.removesuffix(_NS)
    if name not in INSTANTS:
        return f"{stem}_s"
    return stem if stem in ("time", "window_end") else f"{stem}_time"


def with_companions(names: Iterable[str]) -> tuple[str, ...]:
    """Names of columns, each nanosecond column followed by its companion."""
    pairs = ((name, companion_name(name)) for name in names)
    return tuple(each for pair in pairs for each in pair if each is not None)


def _companion(name: str, dialect: Dialect, value: str) -> str:
    return dialect.timestamp(value) if name in INSTANTS else f"{value} / 1e9"


def _value(table: Table, column: TableColumn, dialect: Dialect, value: str) -> str:
    key = (table.name, column.name)
    if key in JSON_ARRAYS:
        return dialect.objects(value, JSON_ARRAYS[key])
    return dialect.mapping(value) if key in JSON_OBJECTS else value


def select_text(
    table: Table, dialect: Dialect, rows: str, present: Collection[str] | None = None
) -> str:
    """A query for all columns of a table; ``rows`` is what stands behind FROM."""
    lines = []
    for name, expression in typed_columns(table, dialect, present):
        quoted = dialect.name_of(name)
        lines.append(f"  {expression}" + (f" AS {quoted}" if expression != quoted else ""))
    return "SELECT\n" + ",\n".join(lines) + f"\nFROM {rows}"
