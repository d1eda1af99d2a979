"""What keeps a folder small and quick: fewer files, no dead ones, a short log, retention.

The caller holds the folder's lock. Nothing here changes a row, so no derived table has anything to
recompute: compaction commits its files as no new data, and what retention drops is told by
``delta_log.kept_from_hour``. A run that is killed leaves files that the next vacuum finds.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from deltalake import DeltaTable

from headgate.base.clock import SystemClock
from headgate.base.errors import InputError
from headgate.pipeline.options import RETAIN_DAYS_MIN
from headgate.pipeline.progress import Progress
from headgate.pipeline.store.delta_log import (
    HOOKS,
    check_layout,
    commit_drop,
    source_key,
    table_files,
)
from headgate.pipeline.store.idempotent_commit import commit
from headgate.pipeline.store.lock_tokens import check_held
from headgate.pipeline.store.table_store import LOG, TableStore, store_of
from headgate.pipeline.tables.catalogue import TABLES
from headgate.pipeline.tables.columns import HOUR_NS

VERSIONS_KEPT: Final = 10
"""So many last versions of a table stay readable whatever a vacuum is told."""

LOG_VERSIONS_KEPT: Final = 1_000
"""So many last versions have their log. Older ones cannot be opened any more, and a vacuum has
mostly taken their files."""

DELETED_AT_ONCE: Final = 1_000
"""Files between two looks at the hold on a folder; S3 deletes as many with one request."""

UNKNOWN_HOURS_MIN: Final = 1
"""How old a file in S3 that no version has must at least be to be taken."""

_LOG_FILE: Final = re.compile(r"(\d{20})\.(json|checkpoint\..*parquet|checkpoint\.parquet)")

Partition = tuple[tuple[str, str], ...]
"""Partition columns and their values as text."""


def table_names(root: str) -> list[str]:
    """Names of the tables that a folder has, without one that a killed run only began to make."""
    store = store_of(root)
    return [name for name in store.tables() if store.is_table(name)]


def check_layouts(root: str) -> None:
    """See that the tables of a folder mean what this version means, before one is changed.

    Raises:
        InputError: one has another layout version.
    """
    store = store_of(root)
    for name in table_names(root):
        if name in TABLES:
            check_layout(store.delta(name), store.uri(name))


def compact(root: str, tables: Iterable[str], progress: Progress, *, dry_run: bool = False) -> int:
    """Make one file of the small files of each partition, and shorten the log.

    ``tables`` are names; those that the folder does not have are left out. Rows and what files
    tell about them stay as they are. With ``dry_run`` nothing is changed, and ``progress`` is told
    what would be. Returns by how many there are fewer files.
    """
    there = set(table_names(root))
    fewer = 0
    for name in tables:
        if name not in there:
            continue
        if dry_run:
            with progress.stage(f"Looking at {name}") as stage:
                partitions = crowded(store_of(root).delta(name), 1)
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
    """Compact the partitions of a table that have more than so many files.

    Returns how many files were taken and how many were made of them.
    """
    store = store_of(root)
    partitions = crowded(store.delta(name), files_max)
    # One commit for all where all are meant; else one for each.
    filters: list[list[tuple[str, str, str]] | None] = [
        [(column, "=", value) for column, value in partition] for partition in partitions
    ]
    if partitions and files_max == 1:
        filters = [None]
    before = after = 0
    for partition_filters in filters:
        check_held(root)
        removed, added = _compacted(store, name, partition_filters)
        before += removed
        after += added
    return before, after


def _compacted(
    store: TableStore, name: str, filters: list[tuple[str, str, str]] | None
) -> tuple[int, int]:
    # A fresh handle for each: a commit goes on from the version that it has loaded.
    delta = store.delta(name)
    done: dict[str, Any] | None = commit(
        store,
        name,
        delta,
        lambda properties: delta.optimize.compact(
            partition_filters=filters,
            commit_properties=properties,
            post_commithook_properties=HOOKS,
        ),
    )
    # What was done is told by the answer; one that got lost in S3 told nothing.
    return (0, 0) if done is None else (done["numFilesRemoved"], done["numFilesAdded"])


def crowded(delta: DeltaTable, files_max: int) -> dict[Partition, int]:
    """Partitions with more than so many live files, in order, and how many they have."""
    counts = Counter(tuple(file.partition.items()) for file in table_files(delta))
    return {partition: count for partition, count in sorted(counts.items()) if count > files_max}


def vacuum(root: str, retain_hours: int, dry_run: bool) -> list[str]:
    """Delete files that no table has had for so many hours, also those of runs that were killed.

    Files of the last :data:`VERSIONS_KEPT` versions of a table stay, for those who read them now.
    With ``dry_run`` nothing is deleted. Returns the files, relative to ``root``.

    In S3 the hold on the folder is looked at after the files are listed, and before each
    :data:`DELETED_AT_ONCE` of them: so all that is on the list was there before anybody else could
    write, and nobody's new files are.

    Raises:
        InputError: ``retain_hours`` is negative.
        LockLostError: somebody else may write; what was deleted before was dead.
    """
    if retain_hours < 0:
        raise InputError(f"retain_hours is {retain_hours}; at least 0 is allowed")
    found: list[str] = []
    store = store_of(root)
    for name in table_names(root):
        if not dry_run:
            check_held(root)
        dead = [f"{name}/{path}" for path in _dead_files(store, name, retain_hours)]
        found += dead
        if dry_run:
            continue
        for first in range(0, len(dead), DELETED_AT_ONCE):
            check_held(root)
            store.delete(dead[first : first + DELETED_AT_ONCE])
        if not store.is_object_store:
            _remove_empty(Path(root, name))
    return found


def _dead_files(store: TableStore, name: str, retain_hours: int) -> set[str]:
    """What a vacuum of a table takes, relative to its folder, in any order.

    In S3 a file that the log does not mention stays for :data:`UNKNOWN_HOURS_MIN` at least: a job
    that lost the folder a moment ago may have written it, and commit it yet.
    """
    delta = store.delta(name)

    def dead(hours: int, *, full: bool) -> list[str]:
        listed: list[str] = delta.vacuum(
            hours,
            dry_run=True,
            enforce_retention_duration=False,
            # Without full only files that the log mentions are found.
            full=full,
            keep_versions=_last_versions(delta, store, name),
        )
        return listed

    if not store.is_object_store or retain_hours >= UNKNOWN_HOURS_MIN:
        return set(dead(retain_hours, full=True))
    return {*dead(UNKNOWN_HOURS_MIN, full=True), *dead(retain_hours, full=False)}


def _last_versions(delta: DeltaTable, store: TableStore, name: str) -> list[int]:
    last = delta.version()
    first = max(_oldest_version(store.names(name, LOG)), last - VERSIONS_KEPT + 1)
    return list(range(first, last + 1))


def _remove_empty(path: Path) -> None:
    """Take away folders of partitions that have no file left."""
    for folder, _, _ in os.walk(path, topdown=False):
        if "=" in Path(folder).name:
            with suppress(OSError):  # it is not empty
                Path(folder).rmdir()


def drop_before(root: str, days: int, *, now_ns: int | None = None, dry_run: bool = False) -> int:
    """Drop all rows of hours (UTC) that ended at least so many days ago, from every table.

    Derived rows that are left stay as they were computed; those whose look-back reaches into what
    is gone are not computed again. Telemetry of dropped hours that comes later is stored, not
    followed up, and dropped the next time. The files go with the next vacuum. Tables that are not
    partitioned by hour are left alone. With ``dry_run`` nothing is dropped. Returns how many files
    were, or would be.

    Raises:
        InputError: ``days`` is less than :data:`RETAIN_DAYS_MIN`.
    """
    if days < RETAIN_DAYS_MIN:
        raise InputError(
            f"retention is {days} days; at least {RETAIN_DAYS_MIN} are needed, because rows "
            "follow from the day before"
        )
    now = SystemClock.wall_ns() if now_ns is None else now_ns
    before_hour = now // HOUR_NS - days * 24
    dropped = 0
    for name in table_names(root):
        delta = store_of(root).delta(name)
        if "hour" not in delta.metadata().partition_columns:
            continue
        if dry_run:
            dropped += sum(file.hour < before_hour for file in table_files(delta))
        else:
            dropped += len(commit_drop(root, delta, before_hour))
    return dropped


def clean_log(root: str, name: str, *, versions_kept: int = LOG_VERSIONS_KEPT) -> int:
    """Delete the log of versions that nobody needs: neither a table that follows from this one,
    nor who wants one of the last versions. Returns how many files were deleted.

    What is left begins at a checkpoint, so all versions from there on can be opened.
    """
    store = store_of(root)
    delta = store.delta(name)
    names = store.names(name, LOG)
    needed = min([delta.version() - versions_kept, *_seen(root, delta)])
    if needed <= _oldest_version(names):
        return 0
    files = sorted(_log_files(names))
    checkpoints = [version for version, file in files if "checkpoint" in file]
    base = max((version for version in checkpoints if version <= needed), default=0)
    old = [f"{name}/{LOG}/{file}" for version, file in files if version < base]
    check_held(root)
    store.delete(old)
    return len(old)


def _seen(root: str, source: DeltaTable) -> Iterator[int]:
    """Up to which version the tables that follow from this one have seen it."""
    key = source_key(source)
    for name in table_names(root):
        version = store_of(root).delta(name).transaction_version(key)
        if version is not None:
            yield version


def _log_files(names: Iterable[str]) -> Iterator[tuple[int, str]]:
    for name in names:
        match = _LOG_FILE.fullmatch(name)
        if match:
            yield int(match[1]), name


def _oldest_version(names: Iterable[str]) -> int:
    """The first version that a log can open: that of the first checkpoint, or 0."""
    files: Collection[tuple[int, str]] = list(_log_files(names))
    if any(version == 0 for version, file in files if file.endswith(".json")):
        return 0
    return min((version for version, file in files if "checkpoint" in file), default=0)
