"""Gathers the frames for one connection and writes them once at the end of each turn."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from headgate.base.errors import InvariantError
from headgate.broker.connection.bounds import OUT_BYTES_MAX
from headgate.broker.connection.ended_connection import ENDED_TRANSPORT, IGNORE, no_bytes

logger = logging.getLogger("headgate.connection")

PART_BYTES: Final = 512
"""Parts below this mean size are joined before they are written: as long as a peer does not read,
uvloop keeps 150 bytes beside each part, many times a PONG."""


class FrameWriter:
    """The frames on their way to one client."""

    __slots__ = (
        "_at_end_of_turn",
        "_entry_bytes",
        "_kept",
        "_on_flushed",
        "_on_kept",
        "_on_unread",
        "_transport",
        "_unread_bytes_max",
        "gathered",
        "is_open",
        "peer_blocked",
        "unread_bytes",
    )

    def __init__(
        self,
        at_end_of_turn: Callable[[Callable[[], None]], None],
        on_flushed: Callable[[], None],
        on_unread: Callable[[], None],
        on_kept: Callable[[int], None],
        unread_bytes_max: Callable[[], int],
    ) -> None:
        """The writer calls ``on_flushed`` after each turn's writing, ``on_unread`` while a peer
        that does not read has more than ``unread_bytes_max()`` to read, and ``on_kept`` with
        the bytes that it keeps for such a peer."""
        self._at_end_of_turn = at_end_of_turn
        self._on_flushed = on_flushed
        self._on_kept = on_kept
        self._on_unread = on_unread
        self._unread_bytes_max = unread_bytes_max
        self._transport: asyncio.Transport
        self.gathered: list[bytes] = []
        """Frames, or parts of frames, of this turn."""
        self._entry_bytes = 0
        """Bytes of the entries in :attr:`gathered`."""
        self.is_open = False
        """False drops everything that is written."""
        self.peer_blocked = False
        """Whether the transport's buffer is full because the peer reads nothing."""
        self.unread_bytes = 0
        """Bytes of the frames written since the buffer became full."""
        self._kept = bytearray()
        """Frames written since then: the transport gets them when the peer reads again."""

    def open(self, transport: asyncio.Transport) -> None:
        """Write to ``transport`` from now on."""
        self._transport = transport
        self.is_open = True

    @property
    def kept_bytes(self) -> int:
        """Bytes that the transport does not have yet, because the peer does not read."""
        return len(self._kept)

    @property
    def has_much_unread(self) -> bool:
        """Whether the peer, which does not read, has more to read than it may leave."""
        return self.unread_bytes > self._unread_bytes_max()

    def finish(self) -> None:
        """Hand everything that was written to the transport, which is about to be closed."""
        if self.gathered:
            self.flush()
        self._write_kept()

    def close(self) -> None:
        """Drop everything that is written from now on."""
        self.is_open = False
        self._kept = bytearray()

    def forget_connection(self) -> None:
        """Call nothing of the connection any more, which has ended."""
        self._on_flushed = self._on_kept = self._on_unread = IGNORE
        self._unread_bytes_max = no_bytes
        self._transport = ENDED_TRANSPORT

    def write(self, frame: bytes) -> None:
        """Write ``frame`` at the end of this turn, after everything written before."""
        if not self.is_open:
            return
        if self.peer_blocked:
            self.unread_bytes += len(frame)
            if self.has_much_unread:
                self._on_unread()
        if not self.gathered:
            self._at_end_of_turn(self.flush)
        self.gathered.append(frame)

    def write_entry(self, head: bytes, body: bytes) -> bool:
        """Write the frame of an entry at the end of this turn, in two parts, which are not copied
        together. False if the connection should take no more entries in this turn."""
        if not self.is_open:
            return True
        gathered = self.gathered
        if not gathered:
            self._at_end_of_turn(self.flush)
        gathered.append(head)
        gathered.append(body)
        self._entry_bytes = entry_bytes = self._entry_bytes + len(body)
        return entry_bytes <= OUT_BYTES_MAX

    def flush(self) -> None:
        """Write what was gathered. After an internal error the connection ends, so that its client
        comes back and asks again."""
        gathered, self.gathered = self.gathered, []
        entry_bytes, self._entry_bytes = self._entry_bytes, 0
        if not self.is_open:
            return
        try:
            if self.peer_blocked:
                before = len(self._kept)
                self._kept += b"".join(gathered)
                self._on_kept(len(self._kept) - before)
            elif entry_bytes < PART_BYTES * len(gathered):
                self._transport.write(b"".join(gathered))
            else:
                self._transport.writelines(gathered)
            self._on_flushed()
        except InvariantError:
            raise
        except Exception:
            # What was gathered is lost, and its peer would wait for it on an open connection.
            logger.exception("writing to a client failed with an internal error: it is cut off")
            self._transport.abort()

    def pause(self) -> None:
        """The peer does not read: the transport's buffer is full."""
        self.peer_blocked = True

    def resume(self) -> None:
        """The peer reads again."""
        self.peer_blocked = False
        self.unread_bytes = 0
        self._write_kept()

    def _write_kept(self) -> None:
        kept, self._kept = self._kept, bytearray()
        if kept and self.is_open:
            self._transport.write(kept)
