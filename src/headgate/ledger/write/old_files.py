"""Files of deleted segments that are kept and become new segments.

A file that was written before has written blocks. A new one has only room, and each sync has to
record in the file system's journal which blocks are written now: see bench/recycling.py.

What lies in an old file is not cleared. Its records have another segment id and an older batch
number than those of the new segment, so replay does not take them for content. Two places are
cleared before a file gets its new name: the beginning, where a first record is expected, and the
end, where a footer would be.
"""

from __future__ import annotations

import contextlib
import threading
from typing import Final

from headgate.base.units import KIB
from headgate.fs.api import File, Fs
from headgate.ledger.format.records import (
    OLD_FILE_SUFFIX,
    PREFIX_BYTES,
    segment_header,
    segment_name,
)
from headgate.ledger.write.file_removal import has_room

OLD_FILES_MAX: Final = 1
"""Most files that a log keeps, so that an idle log has three files without a retained message."""
_DISK_PAGE_BYTES: Final = 4 * KIB
"""What the kernel reads where a write covers a part of it."""
_WRITTEN_PART: Final = 8
"""A file is kept if at most one part in so many lacks written blocks: it has no holes, and is not
much shorter than a segment."""


class OldFiles:
    """The kept files of one log. Thread-safe."""

    def __init__(self, fs: Fs, directory: str, segment_bytes: int) -> None:
        self.count_max = OLD_FILES_MAX
        self._fs = fs
        self._directory = directory
        self._segment_bytes = segment_bytes
        # In small segments, of tests, a page would leave nothing of an old file.
        self._page_bytes = min(_DISK_PAGE_BYTES, max(segment_bytes // 32, PREFIX_BYTES))
        self._names: list[str] = []
        self._lock = threading.Lock()

    @property
    def count(self) -> int:
        """How many files are kept."""
        return len(self._names)

    def keep(self, segment: int) -> bool:
        """Rename the file of a deleted segment instead of removing it; False if it is to be
        removed. The caller syncs the directory, then calls :meth:`add`. Raises
        :class:`OSError`."""
        if not has_room(self._fs, self._directory, self._segment_bytes):
            self.give_back()
            return False
        if self.count >= self.count_max:
            return False
        source = f"{self._directory}/{segment_name(segment)}"
        try:
            file = self._fs.open(source)
            written_bytes = file.allocated_bytes()
            is_shared = file.names_count() > 1  # somebody made a copy of hard links
            file.close()
        except FileNotFoundError:
            raise
        except OSError:
            return False
        if is_shared or written_bytes < self._segment_bytes * (_WRITTEN_PART - 1) // _WRITTEN_PART:
            return False
        self._fs.rename(source, f"{self._directory}/{segment_name(segment)}{OLD_FILE_SUFFIX}")
        return True

    def add(self, segment: int) -> None:
        """The new name of the file is durable: it may be used."""
        with self._lock:
            self._names.append(segment_name(segment) + OLD_FILE_SUFFIX)

    def become(self, segment: int, stamp: int) -> File | None:
        """An open file of a new segment, durable but for its name; None if no file is kept, or if
        it cannot be opened.

        Raises :class:`OSError`; then the kept file is gone.
        """
        with self._lock:
            name = self._names.pop() if self._names else ""
        if not name:
            return None
        path = f"{self._directory}/{name}"
        try:
            file = self._fs.open(path, writable=True)
        except OSError:
            self._remove(path)
            return None
        try:
            size, page_bytes = self._segment_bytes, self._page_bytes
            if file.size() > size:
                file.truncate(size)
            file.allocate(size)
            header = segment_header(segment, stamp, is_reused=True)
            file.write_at(0, [header.ljust(max(page_bytes, len(header) + PREFIX_BYTES), b"\0")])
            file.write_at(size - page_bytes, [bytes(page_bytes)])
            file.sync_data()
            self._fs.rename(path, f"{self._directory}/{segment_name(segment)}")
        except OSError:
            file.close()
            self._remove(path)
            raise
        return file

    def filler(self, end: int) -> bytes:
        """What to write behind a batch that ends at this offset: zeros up to the end of its last
        page, so that the page need not be read first, and replay sees where the records end."""
        page = self._page_bytes
        stop = -(-(end + PREFIX_BYTES) // page) * page
        return bytes(max(min(stop, self._segment_bytes) - end, 0))

    def clear_end(self, file: File, begin: int, end: int) -> None:
        """Write zeros before the offset at which the file is to end, not below ``begin``: old bytes
        there could look like a footer. Raises :class:`OSError`."""
        begin = max(begin, end - self._page_bytes)
        file.write_at(begin, [bytes(max(end - begin, 0))])

    def give_back(self) -> bool:
        """Remove all files; returns whether there was one. One that cannot be removed stays until
        the next start."""
        with self._lock:
            given, self._names = self._names, []
        for name in given:
            self._remove(f"{self._directory}/{name}")
        return bool(given)

    def _remove(self, path: str) -> None:
        with contextlib.suppress(OSError):
            self._fs.remove(path)
