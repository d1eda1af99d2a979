"""A reader that gets the entries of a topic one by one.

The client of an ordinary reader asks for the next entry when it hands on a message. A listener is
another matter: the client asks when the listener has returned. So if this listener returns late, an
entry on which the client fails arrives when all messages before it are taken care of.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any

import pulsar

from pyspark_pulsar.columns import Message


class StepwiseReader:
    """Has the methods of a client's reader. The entry of a message may go, and the next one come,
    when the next call reads or closes."""

    def __init__(self, opened: Callable[[Callable[[Any, Any], None]], Any]) -> None:
        """``opened`` opens the client's reader with a listener, which gets reader and message, and
        a queue of one message."""
        self._arrived: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._done = threading.Semaphore(0)
        self._is_one_out = self._is_closed = False
        self._reader = opened(self._take)

    def read_next(self, timeout_millis: int) -> Message:
        """The next message. Raises :class:`pulsar.Timeout` if none arrives."""
        self._release()
        try:
            message: Message = self._arrived.get(timeout=timeout_millis / 1_000)
        except queue.Empty:
            raise pulsar.Timeout("TimeOut") from None
        self._is_one_out = True
        return message

    def has_message_available(self) -> bool:
        """Whether the broker has messages behind the last one."""
        return bool(self._reader.has_message_available())

    def close(self) -> None:
        """Close the client's reader."""
        self._is_closed = True
        self._done.release()
        self._reader.close()

    def _release(self) -> None:
        if self._is_one_out:
            self._is_one_out = False
            self._done.release()

    def _take(self, _: Any, message: Any) -> None:
        """The listener, in a thread of the client."""
        if not self._is_closed:
            # The message inside is the one that an ordinary reader gives.
            self._arrived.put(getattr(message, "_message", message))
            self._done.acquire()
