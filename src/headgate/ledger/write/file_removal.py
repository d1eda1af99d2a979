"""Removes the files of deleted segments piece by piece.

A file system frees the blocks of a removed file at once. For a segment of 64 MiB that took 33 ms on
ext4 with ``discard``, and each commit waited for it: see docs/decisions/0043. So such a file loses
its name as a segment first, and is then shortened from its end, one piece at a time.

A file with a second name is not shortened: a copy of the data directory may have been made of hard
links.
"""

from __future__ import annotations

import contextlib
import threading
from typing import Final

from headgate.fs.api import Fs
from headgate.ledger.format.records import OLD_FILE_SUFFIX, segment_name

FREE_SEGMENTS_MIN: Final = 4
"""With less room than this many segments on the disk, a file is removed at once."""


def has_room(fs: Fs, directory: str, segment_bytes: int) -> bool:
    """Whether the disk has room for :data:`FREE_SEGMENTS_MIN` segments."""
    try:
        free_bytes = fs.space(directory).free_bytes
    except OSError:
        return False
    return free_bytes >= FREE_SEGMENTS_MIN * segment_bytes


class FileRemoval:
    """The files of one log that nobody needs and that still take room. Thread-safe."""

    def __init__(self, fs: Fs, directory: str, segment_bytes: int, piece_bytes: int) -> None:
        """A step frees ``piece_bytes``."""
        self._fs = fs
        self._directory = directory
        self._segment_bytes = segment_bytes
        self._piece_bytes = piece_bytes
        self._left_bytes: dict[str, int] = {}
        """What each file still has, by its name."""
        self._count = 0
        self._lock = threading.Lock()
        self.left_bytes = 0
        """The room that the files still take."""

    def add_leftovers(self, names: list[str]) -> None:
        """Remove from now on what an earlier start left; small files at once. ``names`` are the
        files of the directory.

        After a large deletion that may be very many files, and a start does not wait for them. None
        is used again: if the power went while its name was changed, a segment may be the same file,
        which then has two names.
        """
        for name in names:
            if name.endswith(OLD_FILE_SUFFIX):
                with contextlib.suppress(OSError):
                    if self._can_shorten(self._path(name)):
                        self.add(name)
                    else:
                        self._fs.remove(self._path(name))

    def put_aside(self, segment: int) -> str:
        """Rename the file of a deleted segment. Returns the new name for :meth:`add`, which the
        caller calls once names are durable; empty if the file was removed.

        Raises :class:`OSError`.
        """
        source = self._path(segment_name(segment))
        name = self._new_name(segment)
        if has_room(self._fs, self._directory, self._segment_bytes) and self._can_shorten(source):
            self._fs.rename(source, self._path(name))
            return name
        self._fs.remove(source)
        return ""

    def second_name(self, segment: int) -> str:
        """Give the file of a segment, which another is about to replace, a second name. Returns it
        for :meth:`add`; empty if it has none, and the replacement frees the file at once.

        Raises :class:`OSError`.
        """
        name = self._new_name(segment)
        source = self._path(segment_name(segment))
        if not self._can_shorten(source) or not self._fs.link(source, self._path(name)):
            return ""
        return name

    def forget(self, name: str) -> None:
        """Remove a second name whose file is not replaced."""
        with contextlib.suppress(OSError):
            self._fs.remove(self._path(name))

    def add(self, name: str) -> None:
        """Remove a file from now on. It is not open anywhere."""
        try:
            file = self._fs.open(self._path(name))
            size_bytes = file.allocated_bytes()
            file.close()
        except OSError:
            size_bytes = 0
        with self._lock:
            self._left_bytes[name] = size_bytes
            self.left_bytes += size_bytes

    def step(self) -> int:
        """Free one piece. Returns its bytes; 0 if no file is left.

        A file that cannot be shortened is removed, and one that cannot be removed stays until the
        next start.
        """
        with self._lock:
            name = next(iter(self._left_bytes), "")
            if not name:
                return 0
            before_bytes = self._left_bytes[name]
            left_bytes = self._shorten(self._path(name))
            if left_bytes:
                self._left_bytes[name] = left_bytes
            else:
                del self._left_bytes[name]
            self.left_bytes -= before_bytes - left_bytes
            return max(before_bytes - left_bytes, 1)

    def finish(self) -> bool:
        """Remove all files at once; returns whether there was one."""
        with self._lock:
            names, self._left_bytes, self.left_bytes = [*self._left_bytes], {}, 0
        for name in names:
            self.forget(name)
        return bool(names)

    def _shorten(self, path: str) -> int:
        """Take a piece off a file; returns what it still has. One of a piece or less is removed."""
        left_bytes = 0
        with contextlib.suppress(OSError):
            file = self._fs.open(path, writable=True)
            try:
                size = file.size() - self._piece_bytes
                if size > 0 and file.names_count() == 1:
                    file.truncate(size)
                    left_bytes = max(file.allocated_bytes(), 1)
            finally:
                file.close()
        if not left_bytes:
            with contextlib.suppress(OSError):
                self._fs.remove(path)
        return left_bytes

    def _can_shorten(self, path: str) -> bool:
        """Whether it is worth it: the file has more than a piece, and one name."""
        try:
            file = self._fs.open(path)
        except FileNotFoundError:
            raise
        except OSError:
            return False
        try:
            return file.allocated_bytes() > self._piece_bytes and file.names_count() == 1
        finally:
            file.close()

    def _new_name(self, segment: int) -> str:
        with self._lock:
            while True:  # an earlier start may have left a file of that name
                self._count += 1
                name = f"{segment_name(segment)}.{self._count}{OLD_FILE_SUFFIX}"
                if name not in self._left_bytes:
                    return name

    def _path(self, name: str) -> str:
        return f"{self._directory}/{name}"
