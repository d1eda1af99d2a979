"""Maintenance of one log: short steps on the event loop, blocking jobs on the upkeep lane."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial

from headgate.base.errors import HeadgateError, InvariantError, NoRoomError, StorageError, broken
from headgate.engine.engine import Engine
from headgate.ledger import CommitLog, Job
from headgate.storage.committer import Committer
from headgate.storage.disk_monitor import DiskMonitor
from headgate.storage.lanes import Lane
from headgate.storage.repeated_failures import RepeatedFailureLogger

logger = logging.getLogger("headgate.sweeps")


class LogMaintenance:
    """Seals segments, writes checkpoints and deletes files when that is due."""

    def __init__(
        self,
        log: CommitLog,
        commits: Lane,
        upkeep: Lane,
        engine: Engine,
        loop: asyncio.AbstractEventLoop,
        begin_turn: Callable[[], None],
        committer: Committer,
        disk: DiskMonitor | None,
        what: str,
    ) -> None:
        """``commits`` is the lane of the log's commits, for jobs that must not run beside one.
        ``disk``, if given, gets each lack of space, which is then no failure. ``what`` names the
        log in log lines."""
        self._log = log
        self._commits = commits
        self._upkeep = upkeep
        self._engine = engine
        self._loop = loop
        self._begin_turn = begin_turn
        self._committer = committer
        self._disk = disk
        self._what = what
        self._failures_by_job: dict[str, RepeatedFailureLogger] = {}
        """One for each kind of job."""
        self._job_running = False
        self._next_slice: asyncio.Handle | None = None
        self._stopped = False
        log.rest_with(upkeep.rest)

    def run(self) -> None:
        """Do a slice of the maintenance, and in each following turn of the loop another one while
        any is due. Call it about once a second."""
        self._log.note_time(self._engine.now_ns)
        if self._next_slice is None:
            self._run_slice()

    def run_if_due(self) -> None:
        """Do the maintenance after a commit, if any is due."""
        if self._next_slice is None and self._log.maintenance_due():
            self._run_slice()

    def _run_slice(self) -> None:
        """Do one step, about a millisecond of work. Commands run before the next one."""
        self._next_slice = None
        if self._job_running or self._stopped:
            return
        try:
            job = self._log.maintenance_step()
        except HeadgateError as error:
            self._failures("").failed(error, self._engine.now_ns)
            self._committer.commit_if_idle()
            return
        except Exception as error:
            raise broken(f"a step of {self._what}'s maintenance", error) from error
        self._check_full()
        if job is not None:
            self._job_running = True
            lane = self._commits if job.is_exclusive else self._upkeep
            lane.submit(job.run, partial(self._job_done, job))
        elif self._log.maintenance_due():
            self._next_slice = self._loop.call_soon(self._run_slice)
            return
        else:
            for failures in self._failures_by_job.values():
                failures.nothing_due(self._engine.now_ns)
        self._committer.commit_if_idle()  # once for all slices: what they staged shares one commit

    def stop(self) -> None:
        """Start no more jobs; a running job is the last one."""
        self._stopped = True

    def internal_errors(self) -> list[str]:
        """The jobs that fail with an internal error at present, each with the error."""
        return [
            failures.internal_error
            for failures in self._failures_by_job.values()
            if failures.internal_error
        ]

    def _failures(self, job: str) -> RepeatedFailureLogger:
        what = f"maintenance of {self._what}" + (f" ({job})" if job else "")
        return self._failures_by_job.setdefault(job, RepeatedFailureLogger(logger, what))

    def _job_done(self, job: Job, _: object, error: BaseException | None) -> None:
        """Handle the end of a job. A failed job stays due: since a power cut may end it anywhere,
        repeating it is safe."""
        self._job_running = False
        self._begin_turn()
        if isinstance(error, InvariantError):
            raise error
        try:
            self._log.finish_job(job, None if error is None else storage_error(job, error))
        except Exception as bug:
            raise broken(f"the end of a job of {self._what} ({job.name})", bug) from bug
        failures = self._failures(job.name)
        if error is None:
            failures.succeeded(self._engine.now_ns)
            self._loop.call_soon(self.run)
        elif self._disk is not None and isinstance(error, NoRoomError):
            self._disk.no_room(error)
        else:
            failures.failed(error, self._engine.now_ns)
        self._check_full()
        self._committer.commit_if_idle()

    def _check_full(self) -> None:
        """Check whether the log became full, or has space again."""
        if self._disk is not None:
            self._disk.check_full()


def storage_error(job: Job, error: BaseException) -> StorageError:
    """The error as a storage error, which the log expects; an internal error is retryable."""
    if isinstance(error, StorageError):
        return error
    return StorageError(f"{job.name} of segment {job.segment}: {error!r}", retryable=True)
