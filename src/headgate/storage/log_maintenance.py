"""The maintenance of one log: short steps on the loop, blocking jobs on the lane that writes it."""

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
    """Seals segments, writes checkpoints and gives up files, when the log says that it is due."""

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
        """``disk`` is told when there is no room, and none of it is a failure then. ``what`` names
        the log in log lines."""
        self._log = log
        self._lane = lane
        self._engine = engine
        self._loop = loop
        self._begin_turn = begin_turn
        self._committer = committer
        self._disk = disk
        self._what = what
        self._troubles: dict[str, RepeatedFailureLog] = {}
        """Of each kind of job."""
        self._job_running = False
        self._stopped = False

    def run(self) -> None:
        """Do what is due. Call it also about once a second when nothing is."""
        while not self._job_running and not self._stopped:
            due = self._log.maintenance_due()
            try:
                job = self._log.maintenance_step()
            except HeadgateError as error:
                self._trouble("").failed(error, self._engine.now_ns)
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
        """The same, after a commit: only when something is."""
        if self._log.maintenance_due():
            self.run()

    def stop(self) -> None:
        """A job that runs is the last one."""
        self._stopped = True

    def bugs(self) -> list[str]:
        """What fails by an error of ours just now, though it is tried again and again."""
        return [trouble.bug for trouble in self._troubles.values() if trouble.bug]

    def _trouble(self, job: str) -> RepeatedFailureLog:
        what = f"maintenance of {self._what}" + (f" ({job})" if job else "")
        return self._troubles.setdefault(job, RepeatedFailureLog(logger, what))

    def _job_done(self, job: Job, _: object, error: BaseException | None) -> None:
        """Take note of how a job ended. One that failed for whatever reason is due again, since
        the power may end it anywhere: doing it a second time changes nothing."""
        self._job_running = False
        self._begin_turn()
        if isinstance(error, InvariantError):
            raise error
        try:
            self._log.finish_job(job, None if error is None else _known(job, error))
        except Exception as bug:
            raise broken(f"the end of a job of {self._what} ({job.name})", bug) from bug
        trouble = self._trouble(job.name)
        if error is None:
            trouble.succeeded(self._engine.now_ns)
            self._loop.call_soon(self.run)
        elif self._disk is not None and isinstance(error, NoRoomError):
            self._disk.no_room(error)
        else:
            trouble.failed(error, self._engine.now_ns)
        self._look()
        self._committer.kick()

    def _look(self) -> None:
        """The log may have become full, or have room again."""
        if self._disk is not None:
            self._disk.look()


def _known(job: Job, error: BaseException) -> StorageError:
    """What the log is told of a job that failed, also by an error of ours."""
    if isinstance(error, StorageError):
        return error
    return StorageError(f"{job.name} of segment {job.segment}: {error!r}", retryable=True)
