"""Keeps the copy of the metadata up to date, on the metadata lane."""

from __future__ import annotations

import logging
from typing import Final, Protocol

from headgate.base.errors import CorruptionError, InvariantError, StorageError
from headgate.base.units import NS_PER_S
from headgate.storage.lanes import Lane, run_on
from headgate.storage.repeated_failures import RepeatedFailureLogger

logger = logging.getLogger("headgate.broker")

RETRY_NS: Final = 30 * NS_PER_S
"""Time after a failure: writing a large copy anew takes the lane for a while."""


class Copied(Protocol):
    """A store with a copy of its rows."""

    @property
    def is_behind(self) -> bool:
        """Whether the copy lacks something. Any thread."""

    def save(self) -> None:
        """Bring the copy up to date. Blocks. Raises :class:`StorageError`."""


class MetadataCopier:
    """Saves the copy when it is behind."""

    def __init__(self, copied: Copied, lane: Lane) -> None:
        """``lane`` is the metadata lane."""
        self._copied = copied
        self._lane = lane
        self._is_busy = False
        self._next_ns = 0
        self._failures = RepeatedFailureLogger(logger, "copying the metadata")

    def save_if_behind(self, now_ns: int) -> None:
        """Save the copy if it lacks something. Call it about once a second."""
        if self._is_busy or now_ns < self._next_ns or not self._copied.is_behind:
            return

        def done(_: object, error: BaseException | None) -> None:
            self._is_busy = False
            if error is None:
                self._failures.succeeded(now_ns)
            elif isinstance(error, InvariantError):
                raise error
            else:
                self._next_ns = now_ns + RETRY_NS
                self._failures.failed(error, now_ns)

        self._is_busy = True
        self._lane.submit(self._copied.save, done)

    def internal_errors(self) -> list[str]:
        """The internal error with which the copying fails at present, if any."""
        return [self._failures.internal_error] if self._failures.internal_error else []

    async def close(self) -> None:
        """Save the last state. Call it once every change is stored or abandoned."""
        if not self._copied.is_behind:
            return
        try:
            await run_on(self._lane, self._copied.save)
        except (StorageError, CorruptionError) as error:
            logger.error("closing: %s", error)
