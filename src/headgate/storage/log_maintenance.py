"""The maintenance of one log: short steps on the loop, blocking jobs on the log's lane."""

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
from headgate.storage.repeated_failures import RepeatedFailureLog

logger = logging.getLogger("headgate.sweeps")


class LogMaintenance:
    """Seals segments, writes checkpoints and deletes files when the log says that it is due."""

    def __init__(
        self,
        log: CommitLog,
        lane: Lane,
        engine: Engine,
        loop: asyncio.AbstractEventLoop,
        begin_turn: Callable[[], None],
        committer: Committer,
        disk: DiskMonitor | None,
        what: str,
    ) -> None:
        """With a ``disk``, a lack of space is reported to it and is no failure. ``what`` names the
        log in log lines."""
        self._log = log
        self._lane = lane
        self._engine = engine
        self._loop = loop
        self._begin_turn = begin_turn
        self._committer = committer
        self._disk = disk
        self._what = what
        self._failures_by_job: dict[str, RepeatedFailureLog] = {}
        """One for each kind of job."""
        self._job_running = False
        self._stopped = False

    def run(self) -> None:
        """Do the maintenance that is due. Call it about once a second."""
        while not self._job_running and not self._stopped:
            due = self._log.maintenance_due()
            try:
                job = self._log.maintenance_step()
            except HeadgateError as error:
                self._failures("").failed(error, self._engine.now_ns)
                break
            except Exception as error:
                raise broken(f"a step of {self._what}'s maintenance", error) from error
            self._look()
            if job is not None:
                self._job_running = True
                self._lane.submit(job.run, partial(self._job_done, job))
            if not due:
                break
        self._committer.kick()

    def run_if_due(self) -> None:
        """The same after a commit, only if something is due."""
        if self._log.maintenance_due():
            self.run()

    def stop(self) -> None:
        """Start no more jobs; a job that runs is the last one."""
        self._stopped = True

    def bugs(self) -> list[str]:
        """The jobs that fail with an internal error at present, each with the error."""
        return [failures.bug for failures in self._failures_by_job.values() if failures.bug]

    def _failures(self, job: str) -> RepeatedFailureLog:
        what = f"maintenance of {self._what}" + (f" ({job})" if job else "")
        return self._failures_by_job.setdefault(job, RepeatedFailureLog(logger, what))

    def _job_done(self, job: Job, _: object, error: BaseException | None) -> None:
        """Handle the end of a job. A failed job stays due: since a power cut may end it anywhere,
        repeating it is safe."""
        self._job_running = False
        self._begin_turn()
        if isinstance(error, InvariantError):
            raise error
        try:
            self._log.finish_job(job, None if error is None else _known(job, error))
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
        self._look()
        self._committer.kick()

    def _look(self) -> None:
        """Check whether the log became full, or has space again."""
        if self._disk is not None:
            self._disk.look()


def _known(job: Job, error: BaseException) -> StorageError:
    """The error as the log expects it, also for an internal error."""
    if isinstance(error, StorageError):
        return error
    return StorageError(f"{job.name} of segment {job.segment}: {error!r}", retryable=True)
