"""Compaction: rewrites the small files of each partition into one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from typing import Any

from deltalake import DeltaTable

from headgate.pipeline.progress import Progress
from headgate.pipeline.store.delta_log import COMMIT_HOOKS, table_files
from headgate.pipeline.store.housekeeping.log_cleanup import clean_log
from headgate.pipeline.store.idempotent_commit import commit
from headgate.pipeline.store.lock_tokens import check_lock
from headgate.pipeline.store.table_store import TableStore, store_of, table_names

Partition = tuple[tuple[str, str], ...]
"""Partition columns and their values as text."""


def compact(root: str, tables: Iterable[str], progress: Progress, *, dry_run: bool = False) -> int:
    """Merge the small files of each partition into one, and shorten the log.

    ``tables`` are names; absent tables are skipped. Rows and the statistics of files stay the
    same. With ``dry_run`` nothing changes, and ``progress`` shows what would. Returns by how many
    the number of files fell.
    """
    there = set(table_names(root))
    fewer = 0
    for name in tables:
        if name not in there:
            continue
        if dry_run:
            with progress.stage(f"Looking at {name}") as stage:
                partitions = crowded_partitions(store_of(root).delta(name), 1)
                stage.result = _would_compact(partitions.values())
            continue
        with progress.stage(f"Compacting {name}") as stage:
            before, after = compact_table(root, name)
            clean_log(root, name)
            fewer += before - after
            stage.result = f"{before:,} files into {after:,}" if before else "nothing to do"
    return fewer


def _would_compact(counts: Collection[int]) -> str:
    if not counts:
        return "nothing to do"
    return f"{sum(counts):,} files would become {len(counts):,}; files of 100 MB stay"


def compact_table(root: str, name: str, *, files_max: int = 1) -> tuple[int, int]:
    """Compact the partitions of a table that have more than ``files_max`` files.

    Returns the number of replaced files and of new ones.
    """
    store = store_of(root)
    partitions = crowded_partitions(store.delta(name), files_max)
    # One commit for all partitions, or one for each if only some are compacted.
    filters: list[list[tuple[str, str, str]] | None] = [
        [(column, "=", value) for column, value in partition] for partition in partitions
    ]
    if partitions and files_max == 1:
        filters = [None]
    before = after = 0
    for partition_filters in filters:
        check_lock(root)
        removed, added = _compacted(store, name, partition_filters)
        before += removed
        after += added
    return before, after


def _compacted(
    store: TableStore, name: str, filters: list[tuple[str, str, str]] | None
) -> tuple[int, int]:
    # A fresh handle for each commit, which follows the version that the handle has loaded.
    delta = store.delta(name)
    done: dict[str, Any] | None = commit(
        store,
        name,
        delta,
        lambda properties: delta.optimize.compact(
            partition_filters=filters,
            commit_properties=properties,
            post_commithook_properties=COMMIT_HOOKS,
        ),
    )
    # The counts are in the response, which may have been lost in S3.
    return (0, 0) if done is None else (done["numFilesRemoved"], done["numFilesAdded"])


def crowded_partitions(delta: DeltaTable, files_max: int) -> dict[Partition, int]:
    """Partitions with more than ``files_max`` live files, in order, with their number."""
    counts = Counter(tuple(file.partition.items()) for file in table_files(delta))
    return {partition: count for partition, count in sorted(counts.items()) if count > files_max}
