"""What differs between the engines that run the views' SQL."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from headgate.pipeline.tables.columns import ColumnType

JsonFields = Mapping[str, ColumnType]
"""The fields of each object in a JSON array."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """One engine's SQL. Its functions take and return expressions as text."""

    name: str
    quote: str
    """The character around an identifier."""
    types: Mapping[ColumnType, str]
    timestamp: Callable[[str], str]
    """An instant from nanoseconds since the epoch, cut to microseconds."""
    objects: Callable[[str, JsonFields], str]
    """An array of structs from a JSON array of objects."""
    mapping: Callable[[str], str]
    """A map of texts from a JSON object."""
    create_view: str
    """The beginning of a statement that creates or replaces a view."""
    rows: Callable[[str], str] | None
    """The rows of the Delta table at a URL; None if they need a view of their own."""

    def name_of(self, identifier: str) -> str:
        """An identifier in quotes, since some columns have names that are keywords."""
        return f"{self.quote}{identifier}{self.quote}"

    def null(self, kind: ColumnType) -> str:
        """Null with a type."""
        return f"CAST(NULL AS {self.types[kind]})"


def text_literal(text: str) -> str:
    """A text as a literal of SQL, which has no escapes."""
    return "'" + text.replace("'", "''") + "'"


_SPARK_TYPES: Final = {
    ColumnType.STRING: "STRING",
    ColumnType.LONG: "BIGINT",
    ColumnType.INT: "INT",
    ColumnType.DOUBLE: "DOUBLE",
    ColumnType.BOOLEAN: "BOOLEAN",
    ColumnType.TIMESTAMP: "TIMESTAMP",
    ColumnType.DATE: "DATE",
    ColumnType.BINARY: "BINARY",
    ColumnType.DOUBLES: "ARRAY<DOUBLE>",
}
_DUCKDB_TYPES: Final = _SPARK_TYPES | {
    ColumnType.STRING: "VARCHAR",
    ColumnType.TIMESTAMP: "TIMESTAMPTZ",
    ColumnType.BINARY: "BLOB",
    ColumnType.DOUBLES: "DOUBLE[]",
}


def _spark_objects(expression: str, fields: JsonFields) -> str:
    names = ", ".join(f"{name}: {_SPARK_TYPES[kind]}" for name, kind in fields.items())
    return f"from_json({expression}, 'ARRAY<STRUCT<{names}>>')"


def _duckdb_objects(expression: str, fields: JsonFields) -> str:
    names = ", ".join(f'"{name}": "{_DUCKDB_TYPES[kind]}"' for name, kind in fields.items())
    return f"from_json({expression}, '[{{{names}}}]')"


def _spark(name: str, create_view: str, rows: Callable[[str], str] | None) -> Dialect:
    return Dialect(
        name=name,
        quote="`",
        types=_SPARK_TYPES,
        timestamp=lambda ns: f"timestamp_micros({ns} DIV 1000)",
        objects=_spark_objects,
        mapping=lambda text: f"from_json({text}, 'MAP<STRING, STRING>')",
        create_view=create_view,
        rows=rows,
    )


SPARK: Final = _spark("spark", "CREATE OR REPLACE TEMPORARY VIEW", None)
"""Spark with ``format("headgate_tables")``, which needs no jar."""

DELTA: Final = _spark("delta", "CREATE OR REPLACE VIEW", lambda url: f"delta.`{url}`")
"""Spark with a Delta connector, as on Databricks; Headgate need not be installed there."""

DUCKDB: Final = Dialect(
    name="duckdb",
    quote='"',
    types=_DUCKDB_TYPES,
    timestamp=lambda ns: f"make_timestamptz({ns} // 1000)",
    objects=_duckdb_objects,
    mapping=lambda text: f"from_json({text}, '\"MAP(VARCHAR, VARCHAR)\"')",
    create_view="CREATE OR REPLACE VIEW",
    rows=lambda url: f"delta_scan({text_literal(url)})",
)

DIALECTS: Final = {dialect.name: dialect for dialect in (SPARK, DUCKDB, DELTA)}
