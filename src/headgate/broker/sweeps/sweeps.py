"""Runs the broker's periodic jobs independently; a failed job runs again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final

from headgate.base.errors import InvariantError
from headgate.broker.work.turn_meter import TurnMeter
from headgate.engine.engine import Engine
from headgate.storage.repeated_failures import RepeatedFailureLogger

logger = logging.getLogger("headgate.sweeps")

SLEEP_S_MAX: Final = 1.0
"""A changed period takes effect after this at the latest."""


@dataclass(slots=True, eq=False)
class Sweep:
    """One periodic job."""

    name: str
    """Names the job in log lines about its failures."""
    run: Callable[[], Coroutine[Any, Any, None]]
    period_s: Callable[[], float]
    """Seconds from one start to the next; may change at any time."""
    failures: RepeatedFailureLogger


class Sweeps:
    """The periodic jobs of one broker."""

    def __init__(self, loop: asyncio.AbstractEventLoop, engine: Engine, meter: TurnMeter) -> None:
        self._loop = loop
        self._meter = meter
        self._engine = engine
        self.jobs: list[Sweep] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._is_stopped = False

    def add(
        self, name: str, run: Callable[[], Coroutine[Any, Any, None]], period_s: Callable[[], float]
    ) -> None:
        """Add a job; call it before :meth:`start`."""
        self.jobs.append(Sweep(name, run, period_s, RepeatedFailureLogger(logger, name)))

    def start(self) -> None:
        """Start all jobs: each runs first after one period."""
        for sweep in self.jobs:
            task = self._loop.create_task(self._repeat(sweep), name=sweep.name)
            task.add_done_callback(self._ended)
            self._tasks.append(task)

    def stop(self) -> None:
        """End all jobs."""
        self._is_stopped = True
        for task in self._tasks:
            task.cancel()
        self._tasks.clear()

    def internal_errors(self) -> list[str]:
        """The jobs that fail with an internal error at present, each with the error."""
        return [
            sweep.failures.internal_error for sweep in self.jobs if sweep.failures.internal_error
        ]

    async def _repeat(self, sweep: Sweep) -> None:
        loop, engine, failures = self._loop, self._engine, sweep.failures
        while True:
            began_s = loop.time()
            # Sleep in short steps, so that a changed period takes effect soon.
            while (left_s := began_s + sweep.period_s() - loop.time()) > 0:
                await asyncio.sleep(min(left_s, SLEEP_S_MAX))
            try:
                await self._meter.measured(sweep.name, sweep.run())
                failures.succeeded(engine.now_ns)
            except InvariantError:
                raise
            except Exception as error:
                failures.failed(error, engine.now_ns)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Report why a job ended to the loop's exception handler: a broken invariant, since the
        broker repeats all other failures."""
        error: BaseException | None = None
        if not task.cancelled():
            error = task.exception()
        elif not self._is_stopped:
            error = InvariantError("a sweep was cancelled while the broker runs")
        if error is not None:
            self._loop.call_exception_handler(
                {"message": "a sweep ended", "exception": error, "task": task}
            )
