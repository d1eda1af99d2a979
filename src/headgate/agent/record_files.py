"""Telemetry records in files, which ``headgate pipeline run --files`` reads.

Each window is one file, ``<end of the window in ms>.records``. It is written under a hidden name,
synced and renamed, so a file that can be seen is whole, and a kill loses at most the window that
was being written: the next one has its amounts, because counters are cumulative. The folder is
bounded; the oldest files go first.
"""

from __future__ import annotations

import errno
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from headgate.agent.records import Record
from headgate.base.errors import HeadgateError, InputError
from headgate.base.units import MIB, NS_PER_HOUR, NS_PER_MS
from headgate.fs.api import Fs, Lock
from headgate.record.frames import FILE_SUFFIX, framed

LOCK_NAME: Final = ".lock"
_HIDDEN: Final = "."
_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT})


class RecordFilesError(HeadgateError):
    """A window could not be written; the text names the folder and the cause."""


@dataclass(frozen=True, slots=True)
class FileBounds:
    """How much a folder may hold."""

    bytes_max: int = 1024 * MIB
    age_ms_max: int = 7 * 24 * NS_PER_HOUR // NS_PER_MS


@dataclass(slots=True)
class FileCounts:
    """What was written since the start."""

    files: int = 0
    bytes: int = 0
    failures: int = 0
    """Windows that could not be written."""
    removed: int = 0
    """Files that were removed because the folder was full or they were old."""


class RecordFiles:
    """The folder of one cluster's records. One process at a time writes to it."""

    def __init__(self, fs: Fs, folder: str, bounds: FileBounds | None = None) -> None:
        """Open a folder, which is made if it is missing, and continue after its last file.

        Raises:
            InputError: it cannot be used, or another process writes to it.
        """
        self._fs = fs
        self._folder = folder.rstrip("/")
        self._bounds = bounds or FileBounds()
        self._held: deque[tuple[int, int]] = deque()
        """Time in the name and size of each file, the oldest first."""
        self.held_bytes = 0
        self.counts = FileCounts()
        try:
            fs.make_directory(self._folder)
            self._lock: Lock = fs.lock(self._path(LOCK_NAME))
        except BlockingIOError as error:
            raise InputError(
                f"folder {folder} of records is used by another agent: give each its own"
            ) from error
        except OSError as error:
            raise InputError(f"folder {folder} of records: {error.strerror}") from error
        try:
            self._take_over()
        except OSError as error:
            self._lock.release()
            raise InputError(f"folder {folder} of records: {error.strerror}") from error

    def _take_over(self) -> None:
        for name in self._fs.list_directory(self._folder):
            if name.endswith(FILE_SUFFIX) and name.startswith(_HIDDEN):
                self._fs.remove(self._path(name))  # a kill left it unfinished
                continue
            stem = name.removesuffix(FILE_SUFFIX)
            if stem != name and stem.isdigit():
                file = self._fs.open(self._path(name))
                self._held.append((int(stem), file.size()))
                file.close()
        self._held = deque(sorted(self._held))
        self.held_bytes = sum(size for _, size in self._held)

    @property
    def folder(self) -> str:
        """Where the files are."""
        return self._folder

    def write(self, records: Iterable[Record], end_ms: int) -> None:
        """Write one window, which ends at ``end_ms`` since the epoch.

        Raises:
            RecordFilesError: it could not be written, and nothing of it is there.
        """
        # Names must ascend, also after the wall clock was set back: readers go by them.
        at_ms = max(end_ms, self._held[-1][0] + 1) if self._held else end_ms
        hidden, name = f"{_HIDDEN}{at_ms}{FILE_SUFFIX}", f"{at_ms}{FILE_SUFFIX}"
        try:
            size = self._written(hidden, records)
            self._fs.rename(self._path(hidden), self._path(name))
            self._fs.sync_directory(self._folder)
        except OSError as error:
            self.counts.failures += 1
            for each in (hidden, name):  # the next window has what this one had
                with suppress(OSError):
                    self._fs.remove(self._path(each))
            if error.errno in _NO_ROOM:
                self._remove_oldest()  # less history rather than none of the present
            raise RecordFilesError(
                f"the records of a window could not be written to {self._folder}: {error.strerror}"
            ) from error
        self._held.append((at_ms, size))
        self.held_bytes += size
        self.counts.files += 1
        self.counts.bytes += size
        self._keep_bounds(at_ms)

    def _written(self, name: str, records: Iterable[Record]) -> int:
        file, size = self._fs.create(self._path(name)), 0
        try:
            for record in records:
                frame = framed(record.data)
                file.write_at(size, [frame])
                size += len(frame)
            file.sync_data()
        finally:
            file.close()
        return size

    def _keep_bounds(self, now_ms: int) -> None:
        oldest_ms = now_ms - self._bounds.age_ms_max
        while len(self._held) > 1 and (
            self.held_bytes > self._bounds.bytes_max or self._held[0][0] < oldest_ms
        ):
            if not self._remove_oldest():
                return

    def _remove_oldest(self) -> bool:
        """Whether the oldest file is gone; False without one, or if it cannot be removed."""
        if not self._held:
            return False
        at_ms, size = self._held[0]
        try:
            self._fs.remove(self._path(f"{at_ms}{FILE_SUFFIX}"))
            self.counts.removed += 1
        except FileNotFoundError:
            pass  # who read it may have removed it
        except OSError:
            return False
        self._held.popleft()
        self.held_bytes -= size
        return True

    def close(self) -> None:
        """Let another process write to the folder."""
        self._lock.release()

    def _path(self, name: str) -> str:
        return f"{self._folder}/{name}"
