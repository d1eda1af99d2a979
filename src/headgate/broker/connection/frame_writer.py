"""Gathers the frames for one connection and writes them once at the end of each turn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from headgate.broker.connection.bounds import OUT_BYTES_MAX, UNREAD_BYTES_MAX


class FrameWriter:
    """The frames on their way to one client."""

    __slots__ = (
        "_at_end_of_turn",
        "_entry_bytes",
        "_on_flushed",
        "_on_unread",
        "_transport",
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
    ) -> None:
        """The writer calls ``on_flushed`` after each write to the transport, and ``on_unread``
        while a peer that does not read has more than :data:`UNREAD_BYTES_MAX` to read."""
        self._at_end_of_turn = at_end_of_turn
        self._on_flushed = on_flushed
        self._on_unread = on_unread
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

    def open(self, transport: asyncio.Transport) -> None:
        """Write to ``transport`` from now on."""
        self._transport = transport
        self.is_open = True

    def close(self) -> None:
        """Drop everything that is written from now on."""
        self.is_open = False

    def write(self, frame: bytes) -> None:
        """Write ``frame`` at the end of this turn, after everything written before."""
        if not self.is_open:
            return
        if self.peer_blocked:
            self.unread_bytes += len(frame)
            if self.unread_bytes > UNREAD_BYTES_MAX:
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
        """Write what was gathered."""
        gathered, self.gathered = self.gathered, []
        self._entry_bytes = 0
        if self.is_open:
            self._transport.writelines(gathered)
            self._on_flushed()

    def pause(self) -> None:
        """The peer does not read: the transport's buffer is full."""
        self.peer_blocked = True

    def resume(self) -> None:
        """The peer reads again."""
        self.peer_blocked = False
        self.unread_bytes = 0
