"""Lanes: executors with one thread each, which run blocking work and return to the event loop.

A lane runs its jobs in order, one at a time. The commit lane commits, the upkeep lane maintains the
logs, the removal lane frees deleted segments, the read lane reads backlog, and the metadata lane
writes the metadata store.
``headgate.testing`` has lanes that run in simulated time.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import Any, Protocol, TypeVar

from headgate.base.errors import InvariantError, broken

logger = logging.getLogger("headgate.lanes")

T = TypeVar("T")

Work = Callable[[], Any]
Done = Callable[[Any, BaseException | None], None]


class Lane(Protocol):
    """Runs blocking work outside the event loop, in order."""

    def submit(self, work: Callable[[], Any], done: Done) -> None:
        """Run ``work``; then call ``done(result, None)`` or ``done(None, error)`` on the loop."""

    def pause(self, seconds: float) -> bool:
        """Sleep, as a part of the running job. Returns whether the job may go on.

        It should end if other jobs wait, and for them there is no sleep. A lane in simulated time
        cannot sleep, so there each job ends.
        """

    def rest(self, seconds: float) -> None:
        """Sleep, as a part of the running job, whatever waits for the lane. No time passes when the
        lane is to end, and in simulated time."""

    def at_once(self, count_max: int) -> int:
        """How many jobs one of the lane's users should put on it at once, so that others do not
        wait for long: ``count_max``, or fewer if jobs take long."""

    def close(self) -> None:
        """Finish the submitted jobs, then end. Blocks."""

    def abandon(self) -> None:
        """End after the submitted jobs, without waiting; the process may end before."""


class ThreadLane:
    """A lane on its own thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, name: str) -> None:
        self._loop = loop
        self._jobs: SimpleQueue[tuple[Callable[[], Any], Done] | None] = SimpleQueue()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[], Any], done: Done) -> None:
        self._jobs.put((work, done))

    def pause(self, seconds: float) -> bool:
        return self._jobs.empty() and not self._ending.wait(seconds) and self._jobs.empty()

    def rest(self, seconds: float) -> None:
        self._ending.wait(seconds)

    def at_once(self, count_max: int) -> int:
        return count_max  # the watch measures

    def close(self) -> None:
        self.abandon()
        self._thread.join()

    def abandon(self) -> None:
        self._ending.set()
        self._jobs.put(None)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            work, done = job
            try:
                result, error = work(), None
            except BaseException as caught:  # ``done`` decides on the loop what it means
                result, error = None, caught
            try:
                self._loop.call_soon_threadsafe(done, result, error)
            except RuntimeError:
                return  # the loop is closed


async def run_on(lane: Lane, work: Callable[[], T]) -> T:
    """Run ``work`` on ``lane`` and wait for its result."""
    result: T = await result_of(partial(lane.submit, work))
    return result


async def result_of(submit: Callable[[Done], None]) -> Any:
    """Wait for the result of work, which ``submit`` begins or puts into a line."""
    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    submit(partial(_settle, future))
    try:
        return await future
    finally:
        del future  # an error's traceback leads to this frame: they would be a cycle


def _settle(future: asyncio.Future[T], result: T, error: BaseException | None) -> None:
    """End ``future`` as a job of a lane ended."""
    if future.cancelled():
        if isinstance(error, InvariantError):
            raise error
        if error is not None:
            logger.error("work that nobody awaits any more failed: %s", error)
    elif error is None:
        future.set_result(result)
    elif isinstance(error, StopIteration):  # asyncio refuses it, and the caller would hang
        future.set_exception(broken("blocking work", error))
    else:
        future.set_exception(error)
