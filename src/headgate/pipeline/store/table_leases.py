"""Leases of tables: which job may write which table of a folder. Readers need none.

A table has two. The job that fills it (a stream, a run, a backtest) holds one for all its life, so
that two jobs never compute the same rows. The job that merges, drops or deletes its files holds the
other one while it does so. Both may write the table at the same time: each commit makes the next
version or none (``delta_log``).

On a file system a lease is a locked file in ``.leases``, which the system releases when the process
ends, however it ends. In S3 it is an object (``s3_lock``).
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Final

from headgate.base.errors import InputError
from headgate.pipeline.location import checked_root, is_object_store
from headgate.pipeline.store.lease import (
    LEASES,
    LOCK,
    Lease,
    TableHeldError,
    housekeeping_name,
    my_lease,
)
from headgate.pipeline.tables.catalogue import FILLED, TABLES

HOUSEKEEPING_POLL_S: Final = 0.5
"""Time between two attempts of a job that waits for a table's housekeeping."""

Hold = Callable[[str, str], AbstractContextManager[None]]
"""Holds the housekeeping lease of a table in a folder, both by name."""


def fill_leases(
    out: str,
    say: Callable[[str], None] = lambda _: None,
    *,
    tables: Collection[str] = FILLED,
    is_patient: bool = True,
) -> AbstractContextManager[None]:
    """Hold the leases of tables that this job fills. ``say`` gets a line about a wait.

    ``is_patient``: in S3, see whether the holder is alive, which takes up to a minute.

    Raises:
        TableHeldError: another job fills one of them.
        InputError: the folder cannot be created or used, or holds other files.
    """
    return _leases(out, tables, say, is_patient=is_patient)


def housekeeping_lease(root: str, table: str) -> AbstractContextManager[None]:
    """Hold the lease of the job that merges, drops or deletes files of a table.

    Raises:
        TableHeldError: another job does so now.
        InputError: the folder cannot be used.
    """
    return _leases(root, [housekeeping_name(table)], lambda _: None)


@contextmanager
def patient_lease(
    root: str,
    table: str,
    patience_s: float,
    *,
    monotonic: Callable[[], float] = time.monotonic,
    wait: Callable[[float], None] = time.sleep,
) -> Iterator[None]:
    """As :func:`housekeeping_lease`, but wait for the other job so long; a turn is short."""
    deadline_s = monotonic() + patience_s
    with ExitStack() as held:
        while True:
            try:
                held.enter_context(housekeeping_lease(root, table))
                break
            except TableHeldError:
                if monotonic() >= deadline_s:
                    raise
                wait(HOUSEKEEPING_POLL_S)
        yield


@contextmanager
def _leases(
    out: str, names: Collection[str], say: Callable[[str], None], *, is_patient: bool = True
) -> Iterator[None]:
    with ExitStack() as held:
        if is_object_store(checked_root(out)):
            # Only tables in S3 load the library for it.
            from headgate.pipeline.store.s3_lock import s3_table_leases

            held.enter_context(
                s3_table_leases(
                    out, names, lambda found: _refuse_foreign(out, found), say, is_patient
                )
            )
        else:
            _lock_files(held, out, names)
        yield


def _lock_files(held: ExitStack, out: str, names: Collection[str]) -> None:
    """Lock the files of these leases, in the order of their names."""
    try:
        Path(out).mkdir(parents=True, exist_ok=True)
        _refuse_foreign(out, sorted(os.listdir(out)))
        Path(out, LEASES).mkdir(exist_ok=True)
        # Jobs of an earlier release lock this file alone, and those of this one share it.
        mark = _opened(held, Path(out, LOCK))
        files = {name: _opened(held, Path(out, LEASES, name)) for name in sorted(names)}
    except OSError as error:
        raise InputError(f"folder {out} cannot be used: {error.strerror}") from error
    try:
        fcntl.flock(mark, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError as error:
        process = os.pread(mark, 32, 0).decode(errors="replace").strip()
        raise InputError(
            f"folder {out} is being written by another job (process {process or 'unknown'}) of an "
            "earlier release; stop it first"
        ) from error
    content = my_lease().to_bytes()
    for name, descriptor in files.items():
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = Lease.from_bytes(os.pread(descriptor, 1_024, 0))
            raise TableHeldError(out, name, holder) from error
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, content, 0)


def _opened(held: ExitStack, path: Path) -> int:
    # Others may write to the folder: a link there would have another file emptied.
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    held.callback(os.close, descriptor)
    return descriptor


def _refuse_foreign(out: str, names: Collection[str]) -> None:
    """Refuse a folder that holds other files."""
    visible = [name for name in names if not name.startswith(".")]
    if visible and not {LOCK, LEASES, *TABLES} & {*names}:
        raise InputError(
            f"folder {out} holds {visible[0]!r} and no tables of this pipeline; choose an empty "
            "folder, or one that an earlier run filled"
        )
