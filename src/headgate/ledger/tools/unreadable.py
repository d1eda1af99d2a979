"""Reads files of which the disk does not read some blocks, as a bad sector.

What it does not read counts as damaged bytes in the same place. So a check goes on behind them and
finds out what they cost.
"""

from __future__ import annotations

import errno
from collections.abc import Collection
from typing import Final, cast

from headgate.fs.api import File, Fs
from headgate.ledger.tools.findings import Finding, Report

BLOCK_BYTES: Final = 4_096
"""What is left out around an unreadable byte."""
FILLER: Final = b"\xa5"
"""Stands for what was not read. No zeros: these can be unused room."""
NOT_READ: Final = (
    "the disk does not read these bytes (input/output error): copy the data directory to a sound "
    "disk with a tool that reads around them, such as ddrescue, and use the copy"
)

Ranges = list[tuple[int, int]]
"""Offsets and sizes, ascending."""


class ReadAroundFs:
    """The files of another file system, for reading."""

    def __init__(self, inner: Fs) -> None:
        self._inner = inner
        self.unread: dict[str, Ranges] = {}
        """What was not read, by path."""

    def list_directory(self, path: str) -> list[str]:
        """The names in a directory."""
        return self._inner.list_directory(path)

    def open(self, path: str, *, writable: bool = False) -> File:
        """A file whose reads go around what the disk does not read."""
        return cast(File, _ReadAroundFile(self._inner.open(path, writable=writable), path, self))

    def note(self, path: str, offset: int, size: int) -> None:
        """Note bytes that were not read, once."""
        found = dict(self.unread.get(path, []))
        found[offset] = max(size, found.get(offset, 0))
        self.unread[path] = sorted(found.items())

    def as_fs(self) -> Fs:
        """This, for code that only reads."""
        return cast(Fs, self)


class _ReadAroundFile:
    def __init__(self, inner: File, path: str, owner: ReadAroundFs) -> None:
        self._inner = inner
        self._path = path
        self._owner = owner

    def read_at(self, offset: int, size: int) -> bytes:
        try:
            return self._inner.read_at(offset, size)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
        parts: list[bytes] = []
        stop = min(offset + size, self.size())
        at = offset
        while at < stop:
            end = min(at - at % BLOCK_BYTES + BLOCK_BYTES, stop)
            try:
                parts.append(self._inner.read_at(at, end - at))
            except OSError as error:
                if error.errno != errno.EIO:
                    raise
                parts.append(FILLER * (end - at))
                self._owner.note(self._path, at, end - at)
            at = end
        return b"".join(parts)

    def size(self) -> int:
        return self._inner.size()

    def allocated_bytes(self) -> int:
        return self._inner.allocated_bytes()

    def close(self) -> None:
        self._inner.close()


def report_unread(
    report: Report, directory: str, unread: dict[str, Ranges], needed: Collection[str]
) -> None:
    """Say of each finding at unread bytes why they are damaged, and add one where the check found
    nothing damaged. A start reads all of the files ``needed``, and fails.

    Nothing of such a file is repaired: its copy could not be read.
    """
    for path, ranges in unread.items():
        name = path.removeprefix(f"{directory}/")
        there = [finding for finding in report.findings if finding.file == name]
        for finding in there:
            finding.mends = []
        for offset, size in _joined(ranges):
            found = [f for f in there if f.is_damage and _overlaps(f, offset, size)]
            if not found:
                found = [report.add(name, offset, size, NOT_READ)]
            for finding in found:
                if NOT_READ not in finding.what:
                    finding.what += f"; {NOT_READ}"
                finding.refuses_start |= name in needed


def _overlaps(finding: Finding, offset: int, size: int) -> bool:
    end = finding.offset + max(finding.size_bytes, 1)
    return finding.offset < offset + size and offset < end


def _joined(ranges: Ranges) -> Ranges:
    found: Ranges = []
    for offset, size in ranges:
        if found and sum(found[-1]) >= offset:
            begin = found[-1][0]
            found[-1] = begin, max(sum(found[-1]), offset + size) - begin
        else:
            found.append((offset, size))
    return found
