"""What a folder of an earlier release lacks, table by table. Nothing is changed here.

No state of an upgrade is stored: the files say which columns they have. So an upgrade that was
killed is continued by repeating it, and a folder that is up to date gives an empty plan.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow.parquet as pq

from headgate.base.errors import InputError
from headgate.pipeline.derived.catalogue import DERIVED
from headgate.pipeline.derived.derived_table import DerivedTable
from headgate.pipeline.store.delta_log import (
    AppTransaction,
    TableFile,
    check_layout,
    has_seen,
    missing_columns,
    source_key,
    table_files,
)
from headgate.pipeline.store.housekeeping.small_files import (
    EVERYTHING,
    small_file_groups,
    total_bytes,
)
from headgate.pipeline.store.log_changes import followed_or_new
from headgate.pipeline.store.table_store import (
    READ_AT_ONCE,
    TableStore,
    store_of,
    table_names,
)
from headgate.pipeline.tables.catalogue import TABLES
from headgate.pipeline.tables.columns import Table
from headgate.pipeline.tables.touched_minutes import TouchedMinutes


@dataclass(frozen=True, slots=True)
class TablePlan:
    """What one table lacks."""

    name: str
    is_absent: bool = False
    columns: tuple[str, ...] = ()
    """Columns that the table lacks."""
    recomputed: tuple[TableFile, ...] = ()
    """Files to replace: they lack columns, and what they follow from is there."""
    input_bytes: int = 0
    """Bytes of the files from which those rows are computed."""
    kept: tuple[TableFile, ...] = ()
    """Files that lack columns and stay, because retention dropped what they follow from."""
    small: tuple[TableFile, ...] = ()
    """Files to merge with others of their partition."""
    merged: int = 0
    """Number of files that they become."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not (self.is_absent or self.columns or self.recomputed or self.small)


def check_versions(root: str) -> None:
    """Check that no table of a folder is of a newer release, before one is changed.

    Raises:
        InputError: one has another layout, or columns that this release does not know. A table that
            is computed anew would lose them.
    """
    store = store_of(root)
    for name in table_names(root):
        if name not in TABLES:
            continue
        delta = store.delta(name)
        check_layout(delta, store.uri(name))
        known = TABLES[name].column_names()
        newer = [field.name for field in delta.schema().fields if field.name not in known]
        if newer:
            raise InputError(
                f"{store.uri(name)} has the column {newer[0]}, of a newer release: upgrade the "
                "folder with that one"
            )


def upgrade_plan(root: str) -> list[TablePlan]:
    """What each table of a folder lacks, in the order of the catalogue."""
    store, there = store_of(root), {*table_names(root)}
    return [
        _plan(store, table, there) if table.name in there else TablePlan(table.name, is_absent=True)
        for table in TABLES.values()
    ]


def _plan(store: TableStore, table: Table, there: Collection[str]) -> TablePlan:
    delta = store.delta(table.name)
    groups = small_file_groups(table_files(delta), EVERYTHING)
    old, input_bytes, computable = incomplete_files(store.root, table), 0, set[int]()
    derived = next((each for each in DERIVED if each.name == table.name), None)
    if derived is not None and old and derived.source.name in there:
        computable = _hours_to_come(store.root, derived, hours_of(old))
        live = followed_or_new(store.root, derived.source)
        input_bytes = total_bytes(derived.inputs(live, TouchedMinutes.whole(computable)))
    recomputed = [file for file in old if file.hour in computable]
    replaced = {file.path for file in recomputed}
    small = [group for group in groups if not all(file.path in replaced for file in group)]
    return TablePlan(
        table.name,
        columns=tuple(missing_columns(delta, table)),
        recomputed=tuple(recomputed),
        input_bytes=input_bytes,
        kept=tuple(file for file in old if file.hour not in computable),
        small=tuple(file for group in small for file in group),
        merged=len(small),
    )


def incomplete_files(root: str, table: Table) -> list[TableFile]:
    """The live files of a derived table that lack a column of this release.

    Of other tables there are none: their rows cannot be computed, and have null there. The footer
    of each file is read.
    """
    if all(table.name != derived.name for derived in DERIVED):
        return []
    store = store_of(root)
    wanted = {*table.column_names()} - {*table.partition_by}
    files = table_files(store.delta(table.name))

    def is_old(file: TableFile) -> bool:
        path = store.path(table.name, file.path)
        return not wanted.issubset(pq.read_schema(path, filesystem=store.files).names)

    with ThreadPoolExecutor(READ_AT_ONCE) as pool:
        return [file for file, old in zip(files, pool.map(is_old, files), strict=True) if old]


def computable_hours(root: str, derived: DerivedTable, hours: Collection[int]) -> set[int]:
    """Those hours of a table that can be computed anew.

    In the others its source has no rows any more, so an upgrade would delete what is there.
    """
    source = store_of(root).delta(derived.source.name)
    return derived.computable(hours, source) & hours_of(table_files(source))


def _hours_to_come(root: str, derived: DerivedTable, hours: Collection[int]) -> set[int]:
    """As :func:`computable_hours`, once the source is up to date: an upgrade may have been killed
    before it was."""
    found = computable_hours(root, derived, hours)
    before = next((each for each in DERIVED if each.table is derived.source), None)
    if before is not None and before.source.name in table_names(root) and _is_behind(root, before):
        source = store_of(root).delta(derived.source.name)
        found |= derived.computable(hours, source) & _hours_to_come(root, before, hours)
    return found


def _is_behind(root: str, derived: DerivedTable) -> bool:
    """Whether a table has not seen the newest version of its source."""
    source = store_of(root).delta(derived.source.name)
    newest = AppTransaction(source_key(source), source.version())
    return not has_seen(store_of(root).delta(derived.name), newest)


def hours_of(files: Iterable[TableFile]) -> set[int]:
    """The hours of some files, counted since the epoch."""
    return {file.hour for file in files}
