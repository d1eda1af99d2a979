"""Rewriting of one log's segments at a bounded rate, in small jobs on the upkeep lane.

The upkeep lane is not the lane of the commits, and other maintenance goes in between: a job reads,
writes and syncs about 64 KiB, or lets another process do that. The pause after it makes the rate.
While nothing else waits for the lane, a job makes the pause itself and moves some more, because
each job costs the event loop two wake-ups. Another process makes the pauses between some pieces.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Final

from headgate.base.errors import InvariantError, broken
from headgate.base.units import NS_PER_S
from headgate.engine.engine import Engine
from headgate.ledger import CommitLog, Job
from headgate.ledger.space.maintenance import REST_S
from headgate.ledger.space.rewriting import RETRY_NS, Pace
from headgate.storage.lanes import Lane
from headgate.storage.log_maintenance import storage_error
from headgate.storage.repeated_failures import RepeatedFailureLogger

logger = logging.getLogger("headgate.sweeps")

PIECES_MAX: Final = 16
"""What one job moves at most, in pieces of up to 64 KiB."""
PAUSE_S_MAX: Final = 0.01
"""The longest pause inside a job. With a low rate the pauses are between the jobs, so that a stop
does not wait for them."""
IDLE_NS: Final = 10 * NS_PER_S
"""How long to wait before looking again if nothing was worth a copy."""


class LogRewriting:
    """Copies what little is retained of segments forward, so that their disk is freed."""

    def __init__(
        self,
        log: CommitLog,
        upkeep: Lane,
        engine: Engine,
        loop: asyncio.AbstractEventLoop,
        begin_turn: Callable[[], None],
        rate: Callable[[], int],
        what: str,
    ) -> None:
        """``rate`` tells the most bytes to write in a second; 0: do nothing. ``what`` names the log
        in log lines."""
        self._log = log
        self._upkeep = upkeep
        self._engine = engine
        self._loop = loop
        self._begin_turn = begin_turn
        self._rate = rate
        self._pace = Pace(self._pause, rate)
        self._failures = RepeatedFailureLogger(logger, f"rewriting of {what}")
        self._next: asyncio.Handle | None = None
        self._job_running = False
        self._idle_until_ns = 0
        self._rewritten_count = 0
        self._failed_ns = 0
        self._stopped = False
        self._pieces = 0
        """What the running job has moved so far."""
        self._job_began_ns = 0

    def run(self) -> None:
        """Begin what is worth it, unless it goes on already. Call it about once a second."""
        is_waiting = self._engine.now_ns < self._idle_until_ns
        if self._next is None and not (self._job_running or is_waiting):
            self._run_slice()

    def stop(self) -> None:
        """Start no more jobs; a running job is the last one."""
        self._stopped = True

    @property
    def internal_error(self) -> str:
        """The internal error with which it fails at present; empty if it does not."""
        return self._failures.internal_error

    def _run_slice(self) -> None:
        """Do one step, about a millisecond of work. Commands run before the next one."""
        self._next = None
        if self._stopped:
            return
        if not self._rate():
            self._log.rest_rewriting()
            return
        if not self._log.rewriting_due():
            self._log.rest_rewriting()
            self._note_success(is_idle=True)
            self._idle_until_ns = self._engine.now_ns + IDLE_NS
            return
        try:
            job = self._log.rewriting_step(self._pace)
        except Exception as error:
            raise broken("a step of the rewriting", error) from error
        if job is None:
            self._note_success(is_idle=False)
            self._next = self._loop.call_soon(self._run_slice)
            return
        self._job_running = True
        self._pieces = 0
        self._job_began_ns = self._engine.now_ns
        before_bytes = self._log.written_bytes().rewritten
        self._upkeep.submit(job.run, partial(self._job_done, job, before_bytes))

    def _pause(self, moved_bytes: int) -> bool:
        """Called on the lane's thread between two pieces; whether the job moves another one."""
        self._pieces += 1
        pause_s = moved_bytes / max(self._rate(), 1)
        if self._stopped or self._pieces >= PIECES_MAX or pause_s > PAUSE_S_MAX:
            return False
        # A piece that only reads or passes on the index moves nothing.
        return self._upkeep.pause(pause_s or REST_S)

    def _job_done(
        self, job: Job, before_bytes: int, _: object, error: BaseException | None
    ) -> None:
        self._job_running = False
        self._begin_turn()
        if isinstance(error, InvariantError):
            raise error
        try:
            self._log.finish_rewriting_job(
                job, None if error is None else storage_error(job, error)
            )
        except Exception as bug:
            raise broken("the end of a job of the rewriting", bug) from bug
        if error is not None:
            self._failed_ns = self._engine.now_ns
            self._failures.failed(error, self._engine.now_ns)
        moved_bytes = self._log.written_bytes().rewritten - before_bytes
        took_s = (self._engine.now_ns - self._job_began_ns) / NS_PER_S
        pause_s = max(moved_bytes / max(self._rate(), 1) - took_s, 0.0)
        self._next = self._loop.call_later(min(pause_s, 1.0), self._run_slice)

    def _note_success(self, *, is_idle: bool) -> None:
        """Failures are over when a rewriting is complete, or when nothing is left to rewrite once
        the segments that failed may be tried again."""
        now_ns, rewritten_count = self._engine.now_ns, self._log.segments_rewritten
        is_tried_again = is_idle and now_ns - self._failed_ns > RETRY_NS
        if rewritten_count != self._rewritten_count or is_tried_again:
            self._rewritten_count = rewritten_count
            self._failures.succeeded(now_ns)
