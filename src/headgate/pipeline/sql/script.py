"""The ``CREATE VIEW`` statements of a folder, as a script for an engine."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from headgate.pipeline.sql.columns import select_text
from headgate.pipeline.sql.dialect import Dialect, text_literal
from headgate.pipeline.sql.view_texts import SQL_VIEWS
from headgate.pipeline.store.delta_log import check_layout
from headgate.pipeline.store.scan import existing_tables
from headgate.pipeline.store.storage_failures import plain_storage_failures
from headgate.pipeline.store.table_store import store_of
from headgate.pipeline.tables.catalogue import SPARK_FORMAT, TABLES

_HEAD: Final = (
    "-- The tables of {root} with types for reports: timestamps *_time and seconds *_s beside\n"
    "-- nanoseconds, arrays and maps in place of JSON. Written by headgate pipeline views.\n"
)
"""The first lines of a script."""
_NEEDS: Final[Mapping[str, str]] = {
    "spark": (
        "-- For a session that can read the tables:\n"
        "--   from headgate.pipeline.source.data_source import register; register(spark)\n"
    ),
    "duckdb": "INSTALL delta;\nLOAD delta;\n",
    "delta": "-- For Spark with a Delta connector.\n",
}

ROWS_SUFFIX: Final = "_rows"
"""Behind the name of a view of a table's plain rows, where an engine needs one."""


def folder_columns(root: str) -> dict[str, list[str]]:
    """The columns of each table of a folder, in the catalogue's order.

    Raises:
        InputError: there is no such folder, or it has no tables, or they have another layout.
        PipelineError: a table cannot be read.
    """
    store = store_of(root)
    names = set(existing_tables(root))
    found: dict[str, list[str]] = {}
    with plain_storage_failures(f"the tables of {root} cannot be read"):
        for name in TABLES:
            if name in names and store.is_table(name):
                delta = store.delta(name)
                check_layout(delta, store.uri(name))
                found[name] = [field.name for field in delta.schema().fields]
    return found


def view_names(tables: Collection[str]) -> list[str]:
    """The views that these tables suffice for."""
    return [v.name for v in SQL_VIEWS.values() if set(v.follows_from) <= set(tables)]


def view_script(root: str, dialect: Dialect) -> str:
    """The script that makes all views of a folder in an engine.

    Raises:
        InputError: as :func:`folder_columns`.
    """
    tables = folder_columns(root)
    return "\n".join(
        [
            _HEAD.format(root=root) + _NEEDS[dialect.name],
            *(f"{statement};\n" for statement in view_statements(root, tables, dialect)),
        ]
    )


def view_statements(
    root: str, tables: Mapping[str, Collection[str]], dialect: Dialect
) -> Iterator[str]:
    """The statements that make the views of some tables, with their columns."""
    store = store_of(root)
    for name, present in tables.items():
        if dialect.rows is None:
            rows = name + ROWS_SUFFIX
            # The reader gives a column that is newer than the folder as null.
            yield (
                f"{dialect.create_view} {rows} USING {SPARK_FORMAT}\n"
                f"OPTIONS (path {text_literal(_absolute(root))}, table {text_literal(name)})"
            )
            yield f"{dialect.create_view} {name} AS\n{select_text(TABLES[name], dialect, rows)}"
        else:
            rows = dialect.rows(store.url(name))
            text = select_text(TABLES[name], dialect, rows, present)
            yield f"{dialect.create_view} {name} AS\n{text}"
    for name in view_names(tables):
        yield f"{dialect.create_view} {name} AS\n{SQL_VIEWS[name].sql(dialect)}"


def _absolute(root: str) -> str:
    store = store_of(root)
    return root.rstrip("/") if store.is_object_store else store.folder
