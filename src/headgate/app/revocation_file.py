"""Reads ``headgateRevocationFile`` again when it changes."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Callable
from typing import Final

from headgate.base.errors import InputError
from headgate.base.units import MIB
from headgate.security.revocation import Revocations, revocations_of_file
from headgate.storage.lanes import Lane, run_on

logger = logging.getLogger("headgate.authentication")

FILE_BYTES_MAX: Final = 16 * MIB

_State = tuple[int, int, int]
"""Inode, size and time of the last change: what replacing or writing a file changes."""


class RevocationFile:
    """The file of one broker.

    A file that is lost or has an error leaves the last entries in force: otherwise its loss would
    admit everybody who is revoked. A changed file is read once two looks have found it unchanged,
    so that half of it is not taken for all.
    """

    def __init__(self, path: str, lane: Lane, use: Callable[[Revocations], None]) -> None:
        """Read the file. Blocks. ``use`` takes its entries, now and whenever they change; later
        looks run on ``lane``.

        Raises:
            InputError: it cannot be read, has an error, or everybody may write it.
        """
        self._path = path
        self._what = f"headgateRevocationFile={path}"
        self._lane = lane
        self._use = use
        self._mode = 0
        """The rights of the file when it was looked at last."""
        self._seen = self._look()
        self._done: _State | None = None
        """The state whose content was read last, with or without an error."""
        self._error: InputError | None = None
        # At the start alone: later an error would keep new revocations from coming into force.
        if self._mode & stat.S_IWOTH:
            raise InputError(
                f"{self._what} may be written by everybody on this machine, who could so admit "
                f"those who are revoked: chmod 644 {path}"
            )
        # Also if it changes meanwhile: the broker never starts without its entries.
        self._take(self._read())
        self._done = self._seen

    async def check(self) -> None:
        """Look at the file, and read it if it changed.

        Raises:
            InputError: it cannot be read, or has an error.
        """
        self._take(await run_on(self._lane, self._read_if_changed))

    def _take(self, revocations: Revocations | None) -> None:
        if revocations is not None:
            self._use(revocations)
            logger.info("%s: %d revocations are in force", self._what, revocations.count)

    def _read_if_changed(self) -> Revocations | None:
        seen, self._seen = self._seen, self._look()
        if self._seen == self._done:
            if self._error is not None:
                raise self._error
            return None
        if self._seen != seen:
            return None
        self._done, self._error = seen, None
        try:
            return self._read()
        except InputError as error:
            self._error = error
            raise

    def _look(self) -> _State:
        try:
            info = os.stat(self._path)
        except OSError as error:
            raise self._unreadable(error) from error
        if not stat.S_ISREG(info.st_mode):
            raise InputError(f"{self._what} is no file")
        self._mode = info.st_mode
        return info.st_ino, info.st_size, info.st_mtime_ns

    def _read(self) -> Revocations:
        try:
            with open(self._path, "rb") as file:
                data = file.read(FILE_BYTES_MAX + 1)
            text = data.decode()
        except OSError as error:
            raise self._unreadable(error) from error
        except UnicodeDecodeError as error:
            raise InputError(f"{self._what} is not UTF-8 text (byte {error.start})") from error
        if len(data) > FILE_BYTES_MAX:
            raise InputError(f"{self._what} is too long: {FILE_BYTES_MAX:,} bytes are allowed")
        return revocations_of_file(text, self._what)

    def _unreadable(self, error: OSError) -> InputError:
        return InputError(f"{self._what} cannot be read: {error.strerror}")
