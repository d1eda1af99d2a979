"""Takes the bytes of a broker apart into commands and entries, at 1 us for an entry of 1 KiB.

A claimed size allocates nothing: the buffer grows as bytes arrive. A frame that did not end in time
goes on at the next call, so a peer that drips keeps nobody longer than the bound of one call.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final, Protocol

from pyspark_pulsar.commands import CommandType, StoredEntry, command_of, entry_place

FRAME_BYTES_MAX: Final = (64 + 1) * 1024 * 1024
"""Longest frame. Pulsar's default for messages is 5 MiB."""

COMMAND_BYTES_MAX: Final = 1024 * 1024
"""Longest command. Its parts take up to a hundred times their bytes when they are parsed."""

BUFFER_BYTES: Final = 256 * 1024
"""Size of the buffer while no frame needs a larger one."""

_WAIT_S_MIN: Final = 0.001
"""A time-out of 0 would mean another kind of socket."""

_unpack: Final = struct.Struct(">II").unpack_from
_HEAD_BYTES: Final = 8
_NO_PREFIX: Final = b"\xff" * 4
"""No command has so many bytes."""
_ENTRY_ID_BYTES_MAX: Final = 10


class Peer(Protocol):
    """What is used of a socket, with or without TLS."""

    def settimeout(self, value: float | None, /) -> None:
        """Bound each later call, in seconds."""

    def recv_into(self, buffer: memoryview, /) -> int | None:
        """Fill the begin of a buffer; 0 if the connection ended, None if there is nothing whole.

        Raises OSError, and of those TimeoutError if nothing came in time."""

    def sendall(self, data: bytes, /) -> None:
        """Send everything. Raises OSError."""

    def close(self) -> None:
        """End the connection."""


class FrameReader:
    """The receiving half of a connection."""

    __slots__ = (
        "_body_at", "_buffer", "_end", "_id_at", "_ledger_id", "_monotonic", "_peer", "_prefix",
        "_start", "_view", "silent_s",
    )  # fmt: skip

    def __init__(self, peer: Peer, monotonic: Callable[[], float]) -> None:
        self._peer = peer
        self._monotonic = monotonic
        self._start = self._end = 0
        self._use(bytearray(BUFFER_BYTES))
        self._ledger_id = 0
        self._prefix = _NO_PREFIX
        self._id_at = self._body_at = 4 + len(_NO_PREFIX)
        self.silent_s = 0.0
        """For how long calls waited since bytes came."""

    def buffered_entry(self) -> StoredEntry | None:
        """The next entry if it has arrived and is of the same ledger as the last one.

        None if :meth:`next_frame` has to look. Between two entries of one ledger the commands
        differ in the entry id alone, so nothing else is parsed.
        """
        start, end, buffer = self._start, self._end, self._buffer
        at = start + self._id_at
        if at >= end or buffer[start + 4 : at] != self._prefix:
            return None
        body_at = start + self._body_at
        stop = start + 4 + _unpack(buffer, start)[0]
        if not body_at <= stop <= end:
            return None
        entry_id = buffer[at]
        if entry_id > 0x7F:
            entry_id, shift = entry_id & 0x7F, 7
            for byte in buffer[at + 1 : at + _ENTRY_ID_BYTES_MAX]:
                entry_id |= (byte & 0x7F) << shift
                if byte < 0x80:
                    break
                shift += 7
        self._start = stop
        return StoredEntry(self._ledger_id, entry_id, self._view[body_at:stop].tobytes())

    def next_frame(self, deadline_s: float) -> StoredEntry | Any | None:
        """The next entry, or a command of another type; None if no frame has ended in time.

        Raises :class:`ValueError` for what is no frame, :class:`EOFError` if the connection ended,
        and :class:`OSError`.
        """
        is_late = False
        while True:
            frame = self.buffered_entry() or self._frame()
            if frame is not None or is_late:
                return frame
            now_s = self._monotonic()
            is_late = now_s >= deadline_s  # then it takes what is there
            if not self._fill(max(deadline_s - now_s, _WAIT_S_MIN)):
                return None

    def _frame(self) -> StoredEntry | Any | None:
        """The next frame if it has arrived."""
        start, arrived = self._start, self._end - self._start
        if arrived < _HEAD_BYTES:
            return None
        total, size = _unpack(self._buffer, start)
        if total > FRAME_BYTES_MAX:
            raise ValueError(f"a frame of {total} bytes, of which {FRAME_BYTES_MAX} are read")
        if not 0 < size <= min(total - 4, COMMAND_BYTES_MAX):
            raise ValueError(f"a frame of {total} bytes with a command of {size} bytes")
        if arrived < 4 + total:
            return None
        body_at, stop = start + _HEAD_BYTES + size, start + 4 + total
        encoded = bytes(self._view[start + _HEAD_BYTES : body_at])
        command = command_of(encoded)
        self._start = stop
        if command.type != CommandType.MESSAGE:
            return command
        place = command.message.message_id
        ledger_id, entry_id = place.ledger_id, place.entry_id
        if ledger_id < 0 or entry_id < 0:
            raise ValueError(f"an entry {ledger_id}:{entry_id}")
        self._learn(encoded, ledger_id, entry_id)
        return StoredEntry(ledger_id, entry_id, self._view[body_at:stop].tobytes())

    def _learn(self, encoded: bytes, ledger_id: int, entry_id: int) -> None:
        """Keep what the next commands begin with, up to the entry id."""
        place = entry_place(ledger_id, entry_id)
        at = encoded.find(place)
        if at < 0:
            return
        at += len(entry_place(ledger_id, None)) + 1
        self._prefix = len(encoded).to_bytes(4, "big") + encoded[:at]
        self._ledger_id = ledger_id
        self._id_at, self._body_at = _HEAD_BYTES + at, _HEAD_BYTES + len(encoded)

    def _fill(self, wait_s: float) -> bool:
        """Receive some bytes; False if none came in time."""
        self._make_room()
        began_s = self._monotonic()
        self._peer.settimeout(wait_s)
        try:
            count = self._peer.recv_into(self._view[self._end :])
        except TimeoutError:
            self.silent_s += max(self._monotonic() - began_s, 0.0)
            return False
        if count is None:
            return True
        if not count:
            raise EOFError("the broker ended it")
        self.silent_s = 0.0
        self._end += count
        return True

    def _make_room(self) -> None:
        """Move what has arrived to the front, of a larger buffer if its frame needs one."""
        start, end, size = self._start, self._end, len(self._buffer)
        if start == end:
            self._start = self._end = 0
            if size > BUFFER_BYTES:
                self._use(bytearray(BUFFER_BYTES))
        elif start:
            self._view[: end - start] = self._view[start:end].tobytes()
            self._start, self._end = 0, end - start
        elif end == size:
            old = self._view
            self._use(bytearray(min(2 * size, 4 + _unpack(self._buffer, 0)[0])))
            self._view[:end] = old

    def _use(self, buffer: bytearray) -> None:
        self._buffer = buffer
        self._view = memoryview(buffer)
