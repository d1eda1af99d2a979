"""Vacuum: deletes files that no version of a table refers to any more."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from deltalake import DeltaTable

from headgate.base.errors import InputError
from headgate.pipeline.store.housekeeping.log_cleanup import oldest_version
from headgate.pipeline.store.lock_tokens import check_lock
from headgate.pipeline.store.table_store import LOG, TableStore, store_of, table_names

VERSIONS_KEPT: Final = 10
"""Number of last versions of a table that stay readable after any vacuum."""

DELETED_AT_ONCE: Final = 1_000
"""Files deleted between two checks of the lock; S3 deletes as many with one request."""

UNKNOWN_HOURS_MIN: Final = 1
"""Least age of a file in S3 that no version of its table refers to, before it is deleted."""


def vacuum(root: str, retain_hours: int, dry_run: bool) -> list[str]:
    """Delete files that no table has used for so many hours, also those of killed runs.

    Files of the last :data:`VERSIONS_KEPT` versions of a table stay for present readers.
    With ``dry_run`` nothing is deleted. Returns the files, relative to ``root``.

    In S3 the function checks the lock after it lists the files, and before it deletes each
    :data:`DELETED_AT_ONCE` of them. So the list has no new file of another job.

    Raises:
        InputError: ``retain_hours`` is negative.
        LockLostError: another job may write. All files deleted before were unused.
    """
    if retain_hours < 0:
        raise InputError(f"retain_hours is {retain_hours}; at least 0 is allowed")
    found: list[str] = []
    store = store_of(root)
    for name in table_names(root):
        if not dry_run:
            check_lock(root)
        dead = [f"{name}/{path}" for path in _dead_files(store, name, retain_hours)]
        found += dead
        if dry_run:
            continue
        for first in range(0, len(dead), DELETED_AT_ONCE):
            check_lock(root)
            store.delete(dead[first : first + DELETED_AT_ONCE])
        if not store.is_object_store:
            _remove_empty(Path(root, name))
    return found


def _dead_files(store: TableStore, name: str, retain_hours: int) -> set[str]:
    """The files of a table that a vacuum deletes, relative to its folder, in any order.

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

    if not store.is_object_store or retain_hours >= UNKNOWN_HOURS_MIN:
        return set(dead(retain_hours, full=True))
    return {*dead(UNKNOWN_HOURS_MIN, full=True), *dead(retain_hours, full=False)}


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
