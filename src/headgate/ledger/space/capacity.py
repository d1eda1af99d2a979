"""Checks at a start that the file system is large enough for a log.

A log writes to one segment while the next one is prepared; that one takes acknowledgements while
the disk is full. A checkpoint needs room beside them.
"""

from __future__ import annotations

from headgate.base.errors import StorageError
from headgate.fs.api import Fs
from headgate.ledger.settings import LedgerSettings


def capacity_needed_bytes(settings: LedgerSettings) -> int:
    """Size of the smallest file system for a log."""
    return 2 * settings.segment_bytes + settings.segment_bytes // 4


def check_capacity(fs: Fs, directory: str, settings: LedgerSettings) -> None:
    """Return if the file system is large enough, however full it is.

    Raises :class:`StorageError` with the size that the log needs, and :class:`OSError`.
    """
    size_bytes, needed_bytes = fs.space(directory).size_bytes, capacity_needed_bytes(settings)
    if size_bytes < needed_bytes:
        raise StorageError(
            f"the file system of {directory} has {size_bytes:,} bytes and the log needs at least "
            f"{needed_bytes:,}: two segments of {settings.segment_bytes:,} and a checkpoint; "
            "choose a larger one with --data-dir",
            retryable=False,
        )


def no_space_to_begin(fs: Fs, directory: str, settings: LedgerSettings) -> StorageError:
    """The error of a start without data and without room for a segment."""
    return StorageError(
        f"the disk of {directory} has no room for the first segment of a log: "
        f"{fs.space(directory).free_bytes:,} bytes are free, "
        f"{capacity_needed_bytes(settings):,} are needed",
        retryable=True,
    )
