"""Sends events in a thread of its own, so that the job neither waits for them nor fails by them."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any, Final

EVENTS_MAX: Final = 256
"""Events that wait; a later one is dropped."""
CLOSE_S: Final = 5.0
"""How long a job that ends waits for its last events."""


class EventSender:
    """Sends events in their order. A failure makes one warning and no other effect."""

    def __init__(
        self,
        emit: Callable[[Any], Any],
        url: str,
        say: Callable[[str], None],
        *,
        close_s: float = CLOSE_S,
    ) -> None:
        """``emit`` sends one event or raises; the thread calls it. ``say`` gets the warning, in the
        thread of the job."""
        self._emit, self._url, self._say, self._close_s = emit, url, say, close_s
        self._waiting: queue.Queue[Any] = queue.Queue(EVENTS_MAX)
        self._failure: str | None = None
        self._is_said = False
        self._thread = threading.Thread(target=self._send_all, name="openlineage", daemon=True)
        self._thread.start()

    def send(self, event: Any) -> None:
        """Send an event soon. If too many wait, it is dropped."""
        try:
            self._waiting.put_nowait(event)
        except queue.Full:
            self._failure = self._failure or f"{EVENTS_MAX} events wait for an answer"
        self._warn()

    def close(self) -> None:
        """Wait until all events are sent, for a bounded time."""
        try:
            self._waiting.put_nowait(None)
        except queue.Full:
            self._failure = self._failure or f"{EVENTS_MAX} events wait for an answer"
        self._thread.join(self._close_s)
        if self._thread.is_alive():
            self._failure = self._failure or f"no answer within {self._close_s:g} s"
        self._warn()

    def _send_all(self) -> None:
        while (event := self._waiting.get()) is not None:
            try:
                self._emit(event)
            except Exception as error:  # The library and what it calls raise many kinds.
                self._failure = self._failure or _reason(error)

    def _warn(self) -> None:
        if self._failure is not None and not self._is_said:
            self._is_said = True
            self._say(
                f"OpenLineage: {self._url} does not take events ({self._failure}). The job goes on;"
                " lineage of this run is incomplete."
            )


def _reason(error: Exception) -> str:
    """The innermost reason of an error in one line."""
    text = str(error).splitlines()[0] if str(error) else type(error).__name__
    return text.rpartition("Caused by ")[2][:200]
