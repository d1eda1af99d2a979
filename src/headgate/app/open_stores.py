"""Opens the stores of a data directory, for a start and for ``accept-loss``."""

from __future__ import annotations

import os
from collections.abc import Callable

from headgate.app.data_directory import DataDirectory
from headgate.app.metadata_copy import CopiedStore
from headgate.base.clock import Clock
from headgate.base.units import NS_PER_MS
from headgate.ledger import CommitLog, LedgerSettings
from headgate.metadata.catalog import Catalog
from headgate.metadata.sqlite_store import SqliteStore
from headgate.metadata.store import MetadataStore
from headgate.storage.log_clock import receive_time_bound
from headgate.storage.managed_logs import TELEMETRY_LOG
from headgate.storage.store_binding import (
    MAIN_LOG,
    is_loss_accepted,
    metadata_missing,
    open_bound_log,
)
from headgate.wire.sequence_ids import entry_sequence


def open_metadata(
    directory: DataDirectory, make_room: Callable[[], bool] = lambda: False
) -> SqliteStore:
    """The directory's metadata, created if the directory is empty. Blocks.

    ``make_room`` frees space when the disk is full (:class:`SqliteStore`).

    Raises:
        BindingError: it is missing, although there is a log.
        CorruptionError: it is damaged, or of a later release.
        StorageError: it cannot be read or created.
    """
    if not directory.has_metadata():
        error = metadata_missing([directory.log_place(name) for name in (MAIN_LOG, TELEMETRY_LOG)])
        if error is not None:
            raise error
    return SqliteStore(directory.metadata_path, make_room=make_room)


def open_copied(directory: DataDirectory, make_room: Callable[[], bool]) -> CopiedStore:
    """As :func:`open_metadata`, with the copy beside the main log."""
    store = open_metadata(directory, make_room)
    return CopiedStore(store, directory.fs, f"{directory.path}/{MAIN_LOG}")


def open_log(
    directory: DataDirectory,
    catalog: Catalog,
    store: MetadataStore,
    clock: Clock,
    settings: LedgerSettings,
    name: str = MAIN_LOG,
    *,
    is_last: bool = True,
) -> CommitLog:
    """One of the directory's logs, if it belongs to the metadata. Blocks.

    ``is_last`` as in :func:`headgate.storage.store_binding.open_bound_log`.

    Raises:
        BindingError: they do not belong together.
        HeadgateError: as :meth:`headgate.ledger.CommitLog.open`.
    """
    place = directory.log_place(name)
    is_main = name == MAIN_LOG
    if is_main:
        # Before anything is changed: a start opens the main log first.
        for other in catalog.identity.starts_by_log:
            is_loss_accepted(catalog, directory.log_place(other))
    boot_wall_ms = clock.wall_ns() // NS_PER_MS
    return open_bound_log(
        catalog,
        store,
        place,
        lambda terms: CommitLog.open(
            directory.fs,
            place.path,
            topic_numbers=catalog.topic_numbers_in("" if is_main else name),
            entropy=os.urandom,
            settings=settings,
            receive_time_bound=receive_time_bound(catalog, clock) if is_main else None,
            topic_number_last=terms.topic_number_last,
            ids_min=terms.ids_min,
            batch_min=terms.batch_min,
            sequence_of=entry_sequence,
        ),
        entropy=os.urandom,
        boot_wall_ms=boot_wall_ms,
        is_last=is_last,
    )
