"""One version of a table, as reads see it. No Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Final

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from headgate.base.errors import InputError
from headgate.base.units import NS_PER_MS
from headgate.pipeline.failures import joined_causes
from headgate.pipeline.store.delta_log import (
    TableFile,
    check_layout,
    files_of_actions,
    table_files,
)
from headgate.pipeline.store.housekeeping.log_cleanup import oldest_version
from headgate.pipeline.store.scan import existing_tables
from headgate.pipeline.store.table_store import LOG, TableStore, store_of
from headgate.pipeline.tables.columns import ColumnType, Table
from headgate.pipeline.time_span import instant

_ROUNDED: Final = timedelta(milliseconds=1)
"""Delta truncates the maximum of timestamps to milliseconds."""

Bounds = tuple[Any, Any]
"""The least and the largest value that a column may have in a file."""


@dataclass(frozen=True, slots=True)
class FileBounds:
    """A live file, and what the log tells of the values in it."""

    file: TableFile
    bounds: Mapping[str, Bounds]
    """By column: partition columns, and those with statistics."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The live files of one version of a table."""

    root: str
    table: Table
    delta: DeltaTable

    @property
    def version(self) -> int:
        """The version's number."""
        return int(self.delta.version())

    def files(self) -> list[TableFile]:
        """The live files."""
        return table_files(self.delta)

    def files_with_bounds(self) -> list[FileBounds]:
        """The live files, with bounds of their values from the log."""
        actions = pa.table(self.delta.get_add_actions(flatten=True))
        types = {column.name: column.type for column in self.table.columns}
        statistics = [
            (name, actions[f"min.{name}"].to_pylist(), actions[f"max.{name}"].to_pylist())
            for name in types
            if f"min.{name}" in actions.column_names and f"max.{name}" in actions.column_names
        ]
        found = []
        files = files_of_actions(actions, self.delta.metadata().partition_columns)
        for place, file in enumerate(files):
            bounds: dict[str, Bounds] = {}
            for name, text in file.partition.items():
                value = _partition_value(text, types[name])
                bounds[name] = (value, value)
            for name, least, largest in statistics:
                if least[place] is not None and largest[place] is not None:
                    bounds[name] = (least[place], _rounded_up(largest[place]))
            found.append(FileBounds(file, bounds))
        return found


def open_snapshot(
    root: str, table: Table, *, version: int | None = None, at_ns: int | None = None
) -> Snapshot:
    """A version of a table: the newest, or this one, or the newest of that time.

    Raises:
        InputError: the folder, the table or the version does not exist, or the layout is another.
    """
    store = store_of(root)
    if not store.is_table(table.name):
        raise InputError(
            f"folder {root} has no table {table.name}: no run has made it yet; there are "
            f"{', '.join(existing_tables(root))}"
        )
    newest = store.delta(table.name)
    check_layout(newest, store.uri(table.name))
    if at_ns is not None:
        version = _version_at(newest, store, table, at_ns)
    if version is None or version == newest.version():
        return Snapshot(root, table, newest)
    oldest = oldest_version(store.names(table.name, LOG))
    if not oldest <= version <= newest.version():
        raise InputError(
            f"option versionAsOf={version}: table {table.name} has versions {oldest} to "
            f"{newest.version()}"
        )
    return Snapshot(root, table, _loaded(store, table, version))


def _loaded(store: TableStore, table: Table, version: int) -> DeltaTable:
    try:
        return DeltaTable(
            store.url(table.name), version=version, storage_options=store.storage_options
        )
    except DeltaError as error:
        raise InputError(
            f"version {version} of table {table.name} cannot be opened: {joined_causes(str(error))}"
        ) from error


def _version_at(newest: DeltaTable, store: TableStore, table: Table, at_ns: int) -> int:
    """The newest version that was committed at this time."""
    oldest = oldest_version(store.names(table.name, LOG))
    commits = [
        (int(commit["version"]), int(commit["timestamp"]) * NS_PER_MS)
        for commit in newest.history()
        if "timestamp" in commit and int(commit["version"]) >= oldest
    ]
    before = [version for version, time_ns in commits if time_ns <= at_ns]
    if not before:
        first = min((time_ns for _, time_ns in commits), default=0)
        raise InputError(
            f"option timestampAsOf: table {table.name} has no version of {instant(at_ns)}; the "
            f"oldest that can be read is of {instant(first)}"
        )
    return max(before)


def gone_files_text(table: Table, version: int) -> str:
    """What to say if files of a version were deleted."""
    return (
        f"files of version {version} of table {table.name} were deleted by a vacuum; the last ten "
        "versions, and those of the last hours, can be read"
    )


def _partition_value(text: str, kind: ColumnType) -> Any:
    if kind is ColumnType.DATE:
        return date.fromisoformat(text)
    return int(text) if kind in (ColumnType.INT, ColumnType.LONG) else text


def _rounded_up(value: Any) -> Any:
    return value + _ROUNDED if isinstance(value, datetime) else value
