"""Room that is kept free for the metadata, so that a full disk stops neither new subscriptions to
new topics nor deletions, which are what makes room again.

    DIR/reserve    a file of zeros, given up a piece at a time

All of it belongs to the metadata's thread.
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
"""Given up at once: less would be used up by the next change, more by somebody else."""


class DiskReserve:
    """The reserve of one data directory."""

    def __init__(self, fs: Fs, path: str) -> None:
        """``path`` is the file's; it is made by :meth:`keep`."""
        self._fs = fs
        self._path = path
        self._kept_bytes = 0
        self._is_sure = False
        """Whether what the file says is there: a copy may be full of holes."""
        with contextlib.suppress(OSError):
            file = fs.open(path)
            self._kept_bytes = file.size()
            file.close()

    @property
    def kept_bytes(self) -> int:
        """What is left of it."""
        return self._kept_bytes

    def keep(self) -> None:
        """Take the room that is missing, if there is some. Blocks, and raises nothing."""
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
            file.truncate(0)  # what was had of it belongs to others
            self._kept_bytes = 0
            raise
        self._kept_bytes, self._is_sure = RESERVE_BYTES, True

    def give(self) -> bool:
        """Give a piece up; False when none is left. Blocks, and raises nothing."""
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
            "the disk is full: a change of the metadata took from the room that is kept for them, "
            "of which %s bytes are left",
            f"{left_bytes:,}",
        )
        return True
