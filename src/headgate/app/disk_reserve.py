"""Disk space reserved for the metadata.

    DIR/reserve    a file of zeros, released piece by piece

On a full disk the metadata still takes new subscriptions, new topics and deletions, and deletions
are what frees space. Only the metadata's thread uses this module.
"""

from __future__ import annotations

import contextlib
import logging
from typing import Final

from headgate.base.units import MIB
from headgate.fs import File, Fs

logger = logging.getLogger("headgate.disk")

RESERVE_BYTES: Final = 8 * MIB
"""Hundreds of changes: one takes a few pages of 4 KiB."""

PIECE_BYTES: Final = MIB
"""Released at a time. One change needs less; the log would take the rest of a larger piece."""


class DiskReserve:
    """The reserve of one data directory."""

    def __init__(self, fs: Fs, path: str) -> None:
        """``path`` is the file's; :meth:`keep` makes it."""
        self._fs = fs
        self._path = path
        self._kept_bytes = 0
        self._is_sure = False
        """Whether the file's blocks are allocated: a copy may be sparse."""
        with contextlib.suppress(OSError):
            file = fs.open(path)
            self._kept_bytes = file.size()
            file.close()

    @property
    def kept_bytes(self) -> int:
        """Bytes that are still reserved."""
        return self._kept_bytes

    def keep(self) -> None:
        """Fill the reserve up if the disk has room. Blocks, and raises nothing."""
        if self._is_sure and self._kept_bytes >= RESERVE_BYTES:
            return
        with contextlib.suppress(OSError):
            file = self._fs.create(self._path)
            try:
                self._allocate(file)
            finally:
                file.close()

    def _allocate(self, file: File) -> None:
        try:
            file.allocate(RESERVE_BYTES)
        except OSError:
            file.truncate(0)  # the reserve is whole or empty
            self._kept_bytes = 0
            raise
        self._kept_bytes, self._is_sure = RESERVE_BYTES, True

    def release(self) -> bool:
        """Free one piece; False when none is left. Blocks, and raises nothing."""
        left_bytes = max(0, self._kept_bytes - PIECE_BYTES)
        if not self._kept_bytes:
            return False
        try:
            file = self._fs.open(self._path, writable=True)
            try:
                file.truncate(left_bytes)
            finally:
                file.close()
        except OSError:
            self._kept_bytes = 0
            return False
        self._kept_bytes = left_bytes
        logger.warning(
            "the disk is full: a change of the metadata used reserved space; %s bytes of it "
            "are left",
            f"{left_bytes:,}",
        )
        return True
