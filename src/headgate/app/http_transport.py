"""The transport of a connection to a web port, as uvicorn uses it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def ignored() -> None:
    """Nothing is to be done."""


class HttpTransport:
    """A transport that drops what is written after its end, as asyncio's do.

    uvloop's raises. With requests behind the one that is answered, uvicorn does not know that its
    client is gone, and would log a traceback for each such connection.

    It reads nothing while uvicorn pauses it, nor while there are bytes to parse.

    Over TLS it ends once most of what was written is read: the loop has a few seconds from the
    begin of the end on, however much is to be read before. The protocol has a time for that.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._is_paused = self._has_kept = self._is_stopped = False
        self._is_ending = False
        self.is_unread = False
        """Whether the protocol was told to stop writing: it is told when it may go on."""
        self.on_resume: Callable[[], None] = ignored
        self.on_close: Callable[[], None] = ignored
        """Is called at each demand for an end."""

    def pause_reading(self) -> None:
        """Read nothing for uvicorn."""
        self._is_paused = True
        self._set_reading()

    def resume_reading(self) -> None:
        """Read again, as far as uvicorn is concerned."""
        self._is_paused = False
        self._set_reading()
        self.on_resume()

    def keep(self, has_kept: bool) -> None:
        """Whether there are bytes to parse."""
        self._has_kept = has_kept
        self._set_reading()

    def _set_reading(self) -> None:
        is_stopped = self._is_paused or self._has_kept or self._is_ending
        if is_stopped == self._is_stopped or self._transport.is_closing():
            return
        self._is_stopped = is_stopped
        if is_stopped:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def write(self, data: bytes) -> None:
        """Send bytes, unless the connection ends."""
        if not self.is_closing():
            self._transport.write(data)

    def is_closing(self) -> bool:
        """Whether nothing more can be written."""
        return self._is_ending or self._transport.is_closing()

    def close(self) -> None:
        """End the connection behind what was written."""
        if self.is_unread and not self._transport.can_write_eof():
            self._is_ending = True
            self._set_reading()
        else:
            self._transport.close()
        self.on_close()

    def end_if_read(self) -> None:
        """The client has read nearly all: an end that was put off begins."""
        self.is_unread = False
        if self._is_ending:
            self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)
