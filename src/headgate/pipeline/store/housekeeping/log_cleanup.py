"""Log cleanup: deletes the log of old versions of a table."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from typing import Final

from deltalake import DeltaTable

from headgate.base.clock import SystemClock
from headgate.pipeline.store.delta_log import source_key
from headgate.pipeline.store.lease import housekeeping_name
from headgate.pipeline.store.lock_tokens import check_lease
from headgate.pipeline.store.log_changes import followed
from headgate.pipeline.store.table_store import LOG, store_of, table_names
from headgate.pipeline.tables.columns import HOUR_NS

LOG_VERSIONS_KEPT: Final = 1_000
"""Number of last versions whose log stays."""

LOG_HOURS_KEPT: Final = 6
"""The log of versions of so many hours also stays, for readers that go on from one of them. A
stream makes a thousand versions in less than three hours. Older versions can no longer be opened; a
vacuum has deleted most of their files."""

_LOG_FILE: Final = re.compile(r"(\d{20})\.(json|checkpoint\..*parquet|checkpoint\.parquet)")


def clean_log(
    root: str,
    name: str,
    *,
    versions_kept: int = LOG_VERSIONS_KEPT,
    hours_kept: int = LOG_HOURS_KEPT,
) -> int:
    """Delete the log of versions that no derived table still reads, that are not among the last,
    and that were replaced longer ago than ``hours_kept``.

    The caller holds the table's housekeeping lease. The rest of the log begins at a checkpoint, so
    all later versions can be opened. Returns the number of deleted files.
    """
    store = store_of(root)
    log = followed(root, name)
    written_ns = store.changed_ns(name, LOG)
    files = sorted(_log_files(written_ns))
    since_ns = SystemClock.wall_ns() - hours_kept * HOUR_NS
    old = [v for v, file in files if file.endswith(".json") and written_ns[file] <= since_ns]
    # The last of them was the newest version at that time.
    needed = min([log.version - versions_kept, max(old, default=0), *_seen(root, log.delta)])
    if needed <= oldest_version(written_ns):
        return 0
    checkpoints = [version for version, file in files if "checkpoint" in file]
    base = max((version for version in checkpoints if version <= needed), default=0)
    unneeded = [f"{name}/{LOG}/{file}" for version, file in files if version < base]
    check_lease(root, housekeeping_name(name))
    store.delete(unneeded)
    return len(unneeded)


def _seen(root: str, source: DeltaTable) -> Iterator[int]:
    """The versions up to which the tables that follow from this one have seen it."""
    key = source_key(source)
    for name in table_names(root):
        log = followed(root, name)
        with log.lock:
            version = log.delta.transaction_version(key)
        if version is not None:
            yield version


def _log_files(names: Iterable[str]) -> Iterator[tuple[int, str]]:
    for name in names:
        match = _LOG_FILE.fullmatch(name)
        if match:
            yield int(match[1]), name


def oldest_version(names: Iterable[str]) -> int:
    """The first version that the log can open: that of the first checkpoint, or 0."""
    files: Collection[tuple[int, str]] = list(_log_files(names))
    if any(version == 0 for version, file in files if file.endswith(".json")):
        return 0
    return min((version for version, file in files if "checkpoint" in file), default=0)
