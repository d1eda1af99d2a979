"""Compaction: rewrites small files of a partition into fewer large ones.

The rows of a group of small files are read batch by batch and written as one file, in one commit.
A run that is killed leaves files that no table refers to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from headgate.base.units import MIB
from headgate.pipeline.progress import Progress
from headgate.pipeline.store.delta_log import TableFile, commit_rewritten
from headgate.pipeline.store.housekeeping.log_cleanup import clean_log
from headgate.pipeline.store.housekeeping.small_files import (
    EVERYTHING,
    SMALL_BYTES,
    CompactionLimits,
    small_file_groups,
    total_bytes,
)
from headgate.pipeline.store.log_changes import followed
from headgate.pipeline.store.parquet_files import FileAdded, TableFiles
from headgate.pipeline.store.table_leases import Hold, housekeeping_lease
from headgate.pipeline.store.table_store import TableStore, store_of, table_names
from headgate.pipeline.tables.arrow_types import plain_schema
from headgate.pipeline.tables.catalogue import TABLES
from headgate.pipeline.tables.columns import Table

COMMIT_BYTES_MAX: Final = 256 * MIB
"""Bytes of files that one commit replaces. A run that is killed repeats at most so much."""

_BATCH_ROWS: Final = 25_000
"""Rows that are read at once; the writer buffers more of them."""


@dataclass(frozen=True, slots=True)
class Compacted:
    """What one compaction of a table did."""

    replaced: int = 0
    """Number of files that were merged."""
    added: int = 0
    """Number of files that they became."""
    size_bytes: int = 0
    """Bytes of the files that were merged."""


def compact(
    root: str,
    tables: Iterable[str],
    progress: Progress,
    *,
    dry_run: bool = False,
    hold: Hold = housekeeping_lease,
) -> int:
    """Merge the small files of each partition, and shorten the log, table by table.

    ``tables`` are names; absent tables are skipped, and those of another release. Rows and the
    statistics of files stay the same. With ``dry_run`` nothing changes, and ``progress`` shows what
    would. Returns by how many the number of files fell.
    """
    there = set(table_names(root)) & TABLES.keys()
    fewer = 0
    for name in tables:
        if name not in there:
            continue
        if dry_run:
            with progress.stage(f"Looking at {name}") as stage:
                groups = small_file_groups(followed(root, name).files(), EVERYTHING)
                stage.result = _would_compact(groups)
            continue
        with progress.stage(f"Compacting {name}") as stage:
            done = compact_table(root, name, hold=hold)
            with hold(root, name):
                clean_log(root, name)
            fewer += done.replaced - done.added
            stage.result = _did_compact(done)
    return fewer


def _did_compact(done: Compacted) -> str:
    return f"{done.replaced:,} files into {done.added:,}" if done.replaced else "nothing to do"


def _would_compact(groups: Sequence[Sequence[TableFile]]) -> str:
    if not groups:
        return "nothing to do"
    return (
        f"{sum(map(len, groups)):,} files would become {len(groups):,}; files of "
        f"{SMALL_BYTES // MIB} MiB stay"
    )


def compact_table(
    root: str,
    name: str,
    limits: CompactionLimits = EVERYTHING,
    *,
    hold: Hold = housekeeping_lease,
) -> Compacted:
    """Merge small files of a table of the catalogue, whose schema stays as it is.

    Files that another job replaces meanwhile stay replaced. No lease is taken if there is nothing
    to merge.

    Raises:
        TableHeldError: ``hold`` found that another job merges files of this table.
    """
    replaced = added = size_bytes = 0
    if not (groups := small_file_groups(followed(root, name).files(), limits)):
        return Compacted()
    delta = store_of(root).delta(name)
    with hold(root, name):
        for part in _commits(groups):
            new = _rewritten(root, TABLES[name], delta, part)
            old = [file for group in part for file in group]
            if not commit_rewritten(root, name, old, new):
                store_of(root).delete([f"{name}/{file.path}" for file in new])
                continue
            replaced, added = replaced + len(old), added + len(new)
            size_bytes += total_bytes(old)
    return Compacted(replaced, added, size_bytes)


def _commits(groups: Iterable[list[TableFile]]) -> Iterator[list[list[TableFile]]]:
    """The groups, as many together as one commit replaces."""
    part: list[list[TableFile]] = []
    for group in groups:
        if part and sum(map(total_bytes, [*part, group])) > COMMIT_BYTES_MAX:
            yield part
            part = []
        part.append(group)
    if part:
        yield part


def _rewritten(
    root: str, table: Table, delta: DeltaTable, groups: Iterable[Sequence[TableFile]]
) -> list[FileAdded]:
    """New files with the rows of each group; on an error nothing is left of them."""
    # Columns of a later release stay, because the schema is that of the table in the folder.
    schema = plain_schema(pa.schema(delta.schema().to_arrow()))
    store = store_of(root)
    writer: TableFiles | None = None
    added: list[FileAdded] = []
    try:
        for group in groups:
            writer = TableFiles(
                root, table, "compact", schema=_written(store, table, schema, group)
            )
            for file in group:
                dataset = store.dataset(table.name, [file.path], schema, table.partition_by)
                # Rows that are read ahead take memory.
                for batch in dataset.to_batches(
                    batch_size=_BATCH_ROWS, batch_readahead=0, fragment_readahead=0
                ):
                    writer.write(pa.Table.from_batches([batch]))
            added += writer.close()
    except BaseException:
        if writer is not None:
            writer.abandon()
        store.delete([f"{table.name}/{file.path}" for file in added])
        raise
    return added


def _written(
    store: TableStore, table: Table, schema: pa.Schema, group: Sequence[TableFile]
) -> pa.Schema:
    """The columns of a merged file: those that one of the files has.

    A column that none has stays absent, so that an upgrade still finds rows of an earlier release.
    """
    names = {*table.partition_by}
    for file in group:
        if len(names) == len(schema):
            break
        footer = pq.read_schema(store.path(table.name, file.path), filesystem=store.files)
        names.update(set(footer.names).intersection(schema.names))
    return pa.schema([field for field in schema if field.name in names])
