"""Keeps the copy of the metadata up to date, on the metadata lane.

A large copy is read and written in steps with pauses between them. Without pauses the event loop
would share its interpreter with that work for a quarter of a second, at 100,000 topics, and be five
to ten times slower meanwhile. Changes of the metadata go in between.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Final, Protocol

from headgate.base.errors import CorruptionError, InvariantError, StorageError
from headgate.base.units import NS_PER_S
from headgate.storage.lanes import Lane, run_on
from headgate.storage.repeated_failures import RepeatedFailureLogger

logger = logging.getLogger("headgate.broker")

RETRY_NS: Final = 30 * NS_PER_S
"""Time after a failure: writing a large copy anew keeps the lane busy for a while."""
PAUSE_S: Final = 0.002
"""Between two steps, which take some tenths of a millisecond."""


class Copied(Protocol):
    """A store with a copy of its rows."""

    @property
    def is_behind(self) -> bool:
        """Whether the copy lacks something. Any thread."""

    def save_steps(self) -> Iterator[None]:
        """Bring the copy up to date in steps, between which the rows may change. Blocks. Raises
        :class:`StorageError`."""

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

        self._is_busy = True
        steps = self._copied.save_steps()

        def advance() -> bool:
            """Take steps until other work waits for the lane; returns whether none is left."""
            return all(self._lane.pause(PAUSE_S) for _ in steps)

        def done(is_over: object, error: BaseException | None) -> None:
            if error is None and not is_over:
                self._lane.submit(advance, done)
                return
            self._is_busy = False
            if error is None:
                self._failures.succeeded(now_ns)
            elif isinstance(error, InvariantError):
                raise error
            else:
                self._next_ns = now_ns + RETRY_NS
                self._failures.failed(error, now_ns)

        self._lane.submit(advance, done)

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
