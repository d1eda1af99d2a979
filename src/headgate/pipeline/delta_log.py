"""Delta tables of a pipeline folder, through delta-rs: create, commit, list. No Spark, no jar.

Rules of this file:

* One writer per folder (``jobs.folder_lock``); the functions here do not defend against a second.
* A commit is idempotent by its application transaction: load the table, compare, commit with that
  same handle. A fresh handle would let the same transaction in twice.
* A maximum statistic is truncated to milliseconds; readers that prune by it must round up.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Final

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.schema import Schema
from deltalake.transaction import AddAction, RemoveAction

from headgate.base.clock import SystemClock
from headgate.base.errors import InputError
from headgate.pipeline.arrow_types import table_arrow_schema
from headgate.pipeline.parquet_files import FileAdded
from headgate.pipeline.tables import Table

Hour = tuple[str, int]
"""A (date, hour) partition: ``("2026-11-21", 9)``."""

LAYOUT_VERSION: Final = 1
"""Version of the tables' meaning; a folder of another one is refused."""

_LAYOUT_KEY: Final = "headgate.layout"


@dataclass(frozen=True, slots=True)
class AppTransaction:
    """Names one act of one application; a second commit with it, or an older one, does nothing."""

    app_id: str
    version: int


def ensure_table(root: str, table: Table) -> DeltaTable:
    """Open a table; create it, or add columns that it does not have yet.

    Raises:
        InputError: the folder holds a table of another layout version.
    """
    path = Path(root, table.name)
    schema = table_arrow_schema(table)
    if not (path / "_delta_log").is_dir():
        path.mkdir(parents=True, exist_ok=True)
        return DeltaTable.create(
            path, Schema.from_arrow(schema), partition_by=list(table.partition_by),
            name=table.name, configuration={_LAYOUT_KEY: str(LAYOUT_VERSION)},
            raise_if_key_not_exists=False,
        )
    delta = DeltaTable(path)
    layout = delta.metadata().configuration.get(_LAYOUT_KEY)
    if layout != str(LAYOUT_VERSION):
        raise InputError(
            f"{path} has table layout {layout}; this version writes {LAYOUT_VERSION}: "
            "choose another folder"
        )
    have = {field.name for field in delta.schema().fields}
    missing = [f for f in Schema.from_arrow(schema).fields if f.name not in have]
    if missing:
        delta.alter.add_columns(missing)
    return delta


def open_table(root: str, name: str) -> DeltaTable:
    """Open an existing table of the folder."""
    return DeltaTable(Path(root, name))


def commit_append(
    root: str, table: Table, files: Sequence[FileAdded], transaction: AppTransaction | None
) -> bool:
    """Add files in one commit; False when the transaction was committed before."""
    return _commit(ensure_table(root, table), files, [], transaction)


def commit_replace(
    root: str, table: Table, files: Sequence[FileAdded], hours: Collection[Hour],
    transaction: AppTransaction | None,
) -> bool:
    """Replace all of some hours by files, in one commit; False when it was committed before."""
    delta = ensure_table(root, table)
    wanted = set(hours)
    now_ms = SystemClock.wall_ns() // 1_000_000
    actions = [
        RemoveAction(
            path=file.path, data_change=True, deletion_timestamp=now_ms,
            size=file.size_bytes, partition_values=dict(file.partition),
        )
        for file in table_files(delta)
        if file.hour in wanted
    ]
    return _commit(delta, files, actions, transaction)


def _commit(
    delta: DeltaTable, files: Sequence[FileAdded], removes: list[RemoveAction],
    transaction: AppTransaction | None,
) -> bool:
    transactions: list[Transaction] = []
    if transaction is not None:
        done = delta.transaction_version(transaction.app_id)
        if done is not None and done >= transaction.version:
            return False
        transactions = [Transaction(transaction.app_id, transaction.version)]
    elif not files and not removes:
        return False
    adds = [
        AddAction(file.path, file.size_bytes, dict(file.partition), file.modified_ms, True,
                  file.statistics)
        for file in files
    ]
    delta.create_write_transaction(
        [*adds, *removes], mode="append", schema=delta.schema(),
        partition_by=delta.metadata().partition_columns,
        commit_properties=CommitProperties(app_transactions=transactions),
    )
    return True


@dataclass(frozen=True, slots=True)
class TableFile:
    """One live file of a table."""

    path: str
    """Relative to the table's folder."""
    size_bytes: int
    partition: dict[str, str]

    @property
    def hour(self) -> Hour:
        """The (date, hour) partition it belongs to."""
        return partition_hour(self.partition)


def partition_hour(partition: Mapping[str, str | None]) -> Hour:
    """The hour of a file's partition values as the log spells them."""
    return str(partition["date"]), int(partition["hour"] or 0)


def table_files(delta: DeltaTable) -> list[TableFile]:
    """All live files of the loaded version."""
    names = delta.metadata().partition_columns
    rows = pa.table(delta.get_add_actions(flatten=True)).to_pylist()
    return [
        TableFile(
            row["path"], row["size_bytes"],
            {name: _partition_text(row[f"partition.{name}"]) for name in names},
        )
        for row in rows
    ]


def _partition_text(value: object) -> str:
    return value.isoformat() if isinstance(value, date) else str(value)


def hours_changed(delta: DeltaTable, after_version: int | None) -> set[Hour]:
    """The hours of files that versions after ``after_version`` added as new data.

    All hours of the table when there is no such version, or when its log is no longer complete:
    derived tables are pure functions, so that recomputing more than needed changes nothing.
    """
    last = delta.version()
    if after_version is not None:
        try:
            return _hours_in_log(Path(delta.table_uri.removeprefix("file://")), after_version, last)
        except FileNotFoundError:
            pass
    return {file.hour for file in table_files(delta)}


def _hours_in_log(folder: Path, after_version: int, last: int) -> set[Hour]:
    hours: set[Hour] = set()
    for version in range(after_version + 1, last + 1):
        text = Path(folder, "_delta_log", f"{version:020d}.json").read_text(encoding="utf-8")
        for line in text.splitlines():
            action = json.loads(line).get("add")
            if action is not None and action.get("dataChange", True):
                hours.add(partition_hour(action["partitionValues"]))
    return hours


def files_of_hours(root: str, delta: DeltaTable, hours: Collection[Hour]) -> list[str]:
    """Absolute paths of the live files of some hours."""
    wanted = set(hours)
    folder = Path(root, delta.metadata().name or "")
    return [str(folder / file.path) for file in table_files(delta) if file.hour in wanted]
