"""Vacuum: deletes files that no version of a table refers to any more."""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

from deltalake import DeltaTable

from headgate.base.clock import SystemClock
from headgate.base.errors import InputError
from headgate.base.units import NS_PER_MS
from headgate.pipeline.store.housekeeping.log_cleanup import oldest_version
from headgate.pipeline.store.lease import TableHeldError, housekeeping_name
from headgate.pipeline.store.lock_tokens import check_lease
from headgate.pipeline.store.log_changes import followed
from headgate.pipeline.store.table_leases import Hold, fill_leases, housekeeping_lease
from headgate.pipeline.store.table_store import LOG, TableStore, store_of, table_names
from headgate.pipeline.tables.columns import HOUR_NS

VERSIONS_KEPT: Final = 10
"""Number of last versions of a table that stay readable after any vacuum."""

DELETED_AT_ONCE: Final = 1_000
"""Files deleted between two checks of the lock; S3 deletes as many with one request."""

UNKNOWN_HOURS_MIN: Final = 1
"""Least age of a file in S3 that no version of its table refers to, before it is deleted."""

FILLED_HOURS_MIN: Final = 1
"""How long a replaced file stays at least while another job fills its table."""


def vacuum(
    root: str,
    retain_hours: int,
    dry_run: bool,
    *,
    filled_here: Collection[str] = (),
    hold: Hold = housekeeping_lease,
    lists_folders: bool = True,
) -> list[str]:
    """Delete files that no table has used for so many hours, also those of killed runs.

    Files of the last :data:`VERSIONS_KEPT` versions of a table stay for present readers.
    With ``dry_run`` nothing is deleted. Returns the files, relative to ``root``.

    A job that fills a table has files there that it has not committed yet. So the files that no
    version ever had are deleted only under the lease of that job: ``filled_here`` are the tables
    that the caller fills and does not write meanwhile. While another job fills a table, replaced
    files stay for :data:`FILLED_HOURS_MIN` at least, because that job reads them.

    Without ``lists_folders`` only files are deleted that this process saw a version remove: a
    stream does not list all files of a year each hour. Others wait for the next vacuum that does.

    In S3 the function checks the lease after it lists the files, and before it deletes each
    :data:`DELETED_AT_ONCE` of them. So the list has no new file of another job.

    Raises:
        InputError: ``retain_hours`` is negative.
        TableHeldError: ``hold`` found that another job merges or deletes files of a table.
        LockLostError: another job may write. All files deleted before were unused.
    """
    if retain_hours < 0:
        raise InputError(f"retain_hours is {retain_hours}; at least 0 is allowed")
    found: list[str] = []
    store = store_of(root)
    for name in table_names(root):
        if dry_run:
            found += _dead_files(store, name, retain_hours, is_still=True)
            continue
        with ExitStack() as held:
            held.enter_context(hold(root, name))
            if not lists_folders:
                found += _delete_removed(store, name, retain_hours)
                continue
            is_still = name in filled_here or _is_unfilled(root, name, held)
            found += _delete(store, name, retain_hours, is_still)
    return found


def _is_unfilled(root: str, name: str, held: ExitStack) -> bool:
    """Whether no job fills a table; then none begins before ``held`` ends."""
    try:
        held.enter_context(fill_leases(root, tables=[name], is_patient=False))
    except TableHeldError:
        return False
    return True


def _delete_removed(store: TableStore, name: str, retain_hours: int) -> list[str]:
    """Delete the files of a table that this process saw removed, and that no reader needs."""
    log = followed(store.root, name)
    oldest_kept = log.version - VERSIONS_KEPT + 1
    until_ms = (SystemClock.wall_ns() - retain_hours * HOUR_NS) // NS_PER_MS
    removed = log.removed_files()
    dead = [f for f in removed if f.version <= oldest_kept and f.removed_ms <= until_ms]
    live = {file.path for file in log.files()} if dead else set()
    paths = [f"{name}/{file.path}" for file in dead if file.path not in live]
    for first in range(0, len(paths), DELETED_AT_ONCE):
        check_lease(store.root, housekeeping_name(name))
        store.delete(paths[first : first + DELETED_AT_ONCE])
    log.forget_removed(max((file.version for file in dead), default=0))
    return paths


def _delete(store: TableStore, name: str, retain_hours: int, is_still: bool) -> list[str]:
    """Delete the dead files of one table, under its housekeeping lease."""
    lease = housekeeping_name(name)
    check_lease(store.root, lease)
    dead = _dead_files(store, name, retain_hours, is_still=is_still)
    for first in range(0, len(dead), DELETED_AT_ONCE):
        check_lease(store.root, lease)
        store.delete(dead[first : first + DELETED_AT_ONCE])
    if not store.is_object_store and is_still:
        # A job that fills the table makes the folder of a partition before the file in it.
        _remove_empty(Path(store.root, name))
    return dead


def _dead_files(store: TableStore, name: str, retain_hours: int, *, is_still: bool) -> list[str]:
    """The files of a table that a vacuum deletes and that are there, relative to the root.

    ``is_still``: no job has files there that it has not committed.

    In S3 a file that the log does not mention stays for :data:`UNKNOWN_HOURS_MIN` at least: a job
    that has just lost the lock may have written it, and may still commit it.
    """
    delta = store.delta(name)

    def dead(hours: int, *, full: bool) -> list[str]:
        listed: list[str] = delta.vacuum(
            hours,
            dry_run=True,
            enforce_retention_duration=False,
            # Without full, only files that the log mentions are listed.
            full=full,
            keep_versions=_last_versions(delta, store, name),
        )
        return listed

    if not is_still:
        paths = {*dead(max(retain_hours, FILLED_HOURS_MIN), full=False)}
    elif not store.is_object_store or retain_hours >= UNKNOWN_HOURS_MIN:
        paths = {*dead(retain_hours, full=True)}
    else:
        paths = {*dead(UNKNOWN_HOURS_MIN, full=True), *dead(retain_hours, full=False)}
    # A removed file is listed for as long as the log tells of it, also if it was deleted long ago.
    return sorted({f"{name}/{path}" for path in paths} & store.present(name))


def _last_versions(delta: DeltaTable, store: TableStore, name: str) -> list[int]:
    last = delta.version()
    first = max(oldest_version(store.names(name, LOG)), last - VERSIONS_KEPT + 1)
    return list(range(first, last + 1))


def _remove_empty(path: Path) -> None:
    """Delete folders of partitions without files."""
    for folder, _, _ in os.walk(path, topdown=False):
        if "=" in Path(folder).name:
            with suppress(OSError):  # it is not empty
                Path(folder).rmdir()
