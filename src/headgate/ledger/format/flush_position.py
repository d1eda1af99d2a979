"""The flush position: how far the log is durable, recorded apart from the segments.

A torn tail and a lost one look alike in a segment: both end in the middle of a record. So each
commit writes its end into this file, and a start compares. The write itself is not synced, which
would double the price of a commit. The position in the file is therefore a lower bound: it was
durable when it was written, and the kernel writes it back within seconds. The file is synced at the
first commit in a segment, after every :data:`SYNC_COMMITS` commits, when a segment is sealed and at
a close. If the file is lost, stale or damaged, later batches still prove that earlier ones were
durable (headgate.ledger.recovery.replay).

File ``durable_end``, two slots written in turn, at offsets 0 and 4096 (little endian)::

    slot    8s magic "HGDUREN\\0" | u32 version | u32 zero | u64 segment | u64 offset where its
            durable records end | u64 number of the last durable batch | u32 CRC32C of all before

The later sound slot counts; a torn write can only damage the older one.
"""

from __future__ import annotations

import logging
import struct
import threading
from typing import Final, NamedTuple

from headgate.fs.api import File, Fs
from headgate.ledger.format.directory import read_file, write_file
from headgate.ledger.format.records import CRC, CRC_BYTES, crc32c

logger = logging.getLogger("headgate.ledger")

FLUSH_POSITION_NAME: Final = "durable_end"
SYNC_COMMITS: Final = 256
"""Most commits between two syncs of the file."""
_VERSION = 1
_MAGIC = b"HGDUREN\0"
_SLOT = struct.Struct("<8sIIQQQ")
_SLOT_STEP = 4096
_SLOTS = 2


class FlushPosition(NamedTuple):
    """A position up to which the log was durable."""

    batch: int
    """Number of the last durable batch; 0 if there never was one."""
    segment: int
    offset: int
    """The offset where the segment's durable records end."""


def read_flush_position(fs: Fs, directory: str) -> FlushPosition | None:
    """The recorded position; None if the file is missing or unreadable.

    Raises :class:`OSError`.
    """
    try:
        data = read_file(fs, f"{directory}/{FLUSH_POSITION_NAME}")
    except FileNotFoundError:
        return None
    return max((end for _, _, end in slots_of(data) if end is not None), default=None)


def slots_of(data: bytes) -> list[tuple[int, bytes, FlushPosition | None]]:
    """Offset, bytes and position of both slots in the file's content; None for one that is not
    sound."""
    size = _SLOT.size + CRC_BYTES
    offsets = [at * _SLOT_STEP for at in range(_SLOTS)]
    return [(offset, data[offset : offset + size], _slot(data, offset)) for offset in offsets]


def flush_position_content(end: FlushPosition) -> bytes:
    """The content of a new file that records this position."""
    return _pack(end).ljust(_SLOTS * _SLOT_STEP, b"\0")


class FlushPositionFile:
    """Writes the flush position. The commit thread notes it; the thread of the upkeep, which seals,
    syncs it too.

    No commit depends on the file. So an error is logged and ends the writing; the recorded position
    stays a valid lower bound.
    """

    def __init__(self, fs: Fs, directory: str) -> None:
        self._fs = fs
        self._directory = directory
        self._file: File | None = None
        """The file while it is written; None once that failed."""
        self._open: File | None = None
        self._segment = 0
        self._writes = 0
        self._unsynced = 0
        self._lock = threading.Lock()
        """For the fields above, and for writing. Nobody holds it during a sync of the file."""

    def begin(self, end: FlushPosition) -> None:
        """Create the file with this position, durably. Call it before :meth:`note`."""
        parts = [flush_position_content(end)]
        try:
            write_file(self._fs, self._directory, FLUSH_POSITION_NAME, parts)
            path = f"{self._directory}/{FLUSH_POSITION_NAME}"
            self._file = self._open = self._fs.open(path, writable=True)
        except OSError as error:
            self._give_up(error)
        self._segment, self._writes = end.segment, 1

    def note(self, end: FlushPosition) -> None:
        """Record that the log is durable up to ``end``."""
        with self._lock:
            if self._file is None:
                return
            try:
                self._file.write_at(self._writes % _SLOTS * _SLOT_STEP, [_pack(end)])
            except OSError as error:
                self._give_up(error)
                return
            self._writes += 1
            self._unsynced += 1
            is_due = end.segment != self._segment or self._unsynced >= SYNC_COMMITS
            self._segment = end.segment
        if is_due:
            self.sync()

    def sync(self) -> None:
        """Make the recorded position durable."""
        with self._lock:
            file, unsynced, self._unsynced = self._file, self._unsynced, 0
        if file is None or not unsynced:
            return
        try:
            file.sync_data()
        except OSError as error:
            with self._lock:
                self._give_up(error)

    def close(self) -> None:
        """Sync and close."""
        self.sync()
        if self._open is not None:
            self._open.close()
            self._open = self._file = None

    def _give_up(self, error: OSError) -> None:
        logger.warning(
            "%s/%s is not written until the next start, which can then detect a lost end of the "
            "log by later batches only: %s",
            self._directory,
            FLUSH_POSITION_NAME,
            error,
        )
        self._file = None  # close() closes it: another thread may be in a call on it


def _pack(end: FlushPosition) -> bytes:
    body = _SLOT.pack(_MAGIC, _VERSION, 0, end.segment, end.offset, end.batch)
    return body + CRC.pack(crc32c(body))


def _slot(data: bytes, at: int) -> FlushPosition | None:
    slot = data[at : at + _SLOT.size + CRC_BYTES]
    if len(slot) < _SLOT.size + CRC_BYTES:
        return None
    magic, version, _, segment, offset, batch = _SLOT.unpack_from(slot)
    (crc,) = CRC.unpack_from(slot, _SLOT.size)
    if magic != _MAGIC or version != _VERSION or crc != crc32c(slot[: _SLOT.size]):
        return None
    return FlushPosition(batch, segment, offset)
