"""Frees the files of one log's deleted segments, one piece after the other.

Between two pieces is a pause, in which commits go on. A lane of its own makes most pauses itself:
each job costs the event loop two wake-ups, and receipts wait for them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from headgate.base.errors import InvariantError
from headgate.base.units import MIB
from headgate.engine.engine import Engine
from headgate.ledger import CommitLog
from headgate.storage.lanes import Lane
from headgate.storage.repeated_failures import RepeatedFailureLogger

logger = logging.getLogger("headgate.sweeps")

BYTES_PER_S: Final = 32 * MIB
"""How fast files are freed, if not much is left to free."""
PART_PER_S: Final = 8
"""If much is left, one part in so many of it is freed in a second: a terabyte is gone in about a
minute, if the disk can do that."""

FREED_PIECES_MAX: Final = 16
"""What one job frees at most. A stop waits for the pause after a piece, not for the job."""


class PacedRemoval:
    """Frees what is left of deleted segments at a bounded rate."""

    def __init__(
        self,
        log: CommitLog,
        lane: Lane,
        engine: Engine,
        loop: asyncio.AbstractEventLoop,
        begin_turn: Callable[[], None],
        what: str,
    ) -> None:
        """``what`` names the log in log lines."""
        self._log = log
        self._lane = lane
        self._engine = engine
        self._loop = loop
        self._begin_turn = begin_turn
        self._failures = RepeatedFailureLogger(logger, f"removal of segments of {what}")
        self._next: asyncio.Handle | None = None
        self._job_running = False
        self._stopped = False

    def run(self) -> None:
        """Begin to free what is left, unless it goes on already. Call it about once a second."""
        if self._next is None and not self._job_running:
            self._run_step()

    def stop(self) -> None:
        """Free no more; the next start removes what is left."""
        self._stopped = True

    @property
    def internal_error(self) -> str:
        """The internal error with which it fails at present; empty if it does not."""
        return self._failures.internal_error

    def _run_step(self) -> None:
        self._next = None
        if self._log.removal_left_bytes and not self._stopped:
            self._job_running = True
            self._lane.submit(self._free_pieces, self._pieces_freed)

    def _free_pieces(self) -> int:
        """Free some pieces, on the thread of the lane. Returns the bytes of the last one, after
        which there was no pause yet; 0 if nothing is left."""
        for _ in range(FREED_PIECES_MAX):
            piece_bytes = self._log.removal_step()
            if not piece_bytes or self._stopped:
                break
            if not self._lane.pause(piece_bytes / self._rate()):
                break
        return piece_bytes

    def _rate(self) -> int:
        """Bytes to free in a second."""
        return max(BYTES_PER_S, self._log.removal_left_bytes // PART_PER_S)

    def _pieces_freed(self, freed_bytes: int | None, error: BaseException | None) -> None:
        self._job_running = False
        self._begin_turn()
        if isinstance(error, InvariantError):
            raise error
        if error is not None:
            self._failures.failed(error, self._engine.now_ns)
            return
        self._failures.succeeded(self._engine.now_ns)
        self._next = self._loop.call_later((freed_bytes or 0) / self._rate(), self._run_step)
