"""An asyncio event loop on virtual time: deterministic, without sockets and threads.

Callbacks run in the order in which they became due, as on any loop; none takes time. When nothing
is ready the clock jumps to the next timer, so an hour of sleeping costs nothing. When there is no
timer either, nothing will ever happen again: that is an error of the test or a dead-lock, and
:class:`StalledError` says so at once.

An exception that nothing catches (in a callback, or in a task that is not awaited) ends the run,
so that no test passes over it.
"""

from __future__ import annotations

import asyncio
import contextvars
from asyncio.base_events import BaseEventLoop
from collections.abc import Coroutine
from typing import Any

from headgate.base.errors import HeadgateError
from headgate.base.units import NS_PER_S
from headgate.testing.clock import ManualClock

HOST: contextvars.ContextVar[int] = contextvars.ContextVar("host", default=0)
"""Which simulated machine a task belongs to; 0 is the test itself."""


class StalledError(HeadgateError):
    """The loop has no callback and no timer left, so that what it waits for cannot happen."""


class SimLoop(BaseEventLoop):
    """Virtual time, in nanoseconds of a :class:`ManualClock`."""

    def __init__(self, clock: ManualClock | None = None) -> None:
        """Run on ``clock``; on a new one when none is given."""
        super().__init__()
        self.clock = clock or ManualClock()
        self._selector = _NoSelector(self)
        self._scheduled: list[Any]
        self._failure: BaseException | None = None
        self._tasks: dict[asyncio.Task[Any], int] = {}
        self.set_exception_handler(_remember)
        self.set_task_factory(_make_task)  # type: ignore[arg-type]  # its protocol is too wide

    def time(self) -> float:
        """Seconds of the clock's monotonic reading."""
        return self.clock.monotonic_ns() / NS_PER_S

    def fail(self, error: BaseException) -> None:
        """End the run with ``error``; the first one counts."""
        if self._failure is None:
            self._failure = error

    def kill_host(self, host: int) -> None:
        """Cancel every task and timer of one simulated machine."""
        for handle in list(self._scheduled):
            if handle._context.get(HOST, 0) == host:
                handle.cancel()
        for task in [task for task, owner in self._tasks.items() if owner == host]:
            task.cancel()

    def raise_failure(self) -> None:
        """Raise the error that :meth:`fail` kept, once."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _remember_task(self, task: asyncio.Task[Any], context: contextvars.Context | None) -> None:
        self._tasks[task] = HOST.get() if context is None else context.get(HOST, 0)
        task.add_done_callback(lambda done: self._tasks.pop(done, None))

    # What BaseEventLoop leaves to loops with real sockets.

    def _process_events(self, event_list: list[Any]) -> None:
        """There are no events but timers and callbacks."""

    def _write_to_self(self) -> None:
        """The loop never sleeps in a system call, so there is nothing to wake."""


class _NoSelector:
    """Stands for the selector: advances the clock where a real loop sleeps."""

    def __init__(self, loop: SimLoop) -> None:
        self._loop = loop

    def select(self, timeout: float | None) -> list[Any]:
        loop = self._loop
        loop.raise_failure()
        if timeout is None:
            raise StalledError(
                f"nothing is left to do at {loop.time():.6f} s, and what was waited for "
                "has not happened"
            )
        if timeout > 0:
            # Rounded up: a timer must be due after the jump, or the loop would spin.
            loop.clock.advance(int(timeout * NS_PER_S) + 1)
        return []


def _make_task(
    loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, Any], **options: Any
) -> asyncio.Task[Any]:
    task = asyncio.Task(coroutine, loop=loop, **options)
    if isinstance(loop, SimLoop):
        loop._remember_task(task, options.get("context"))
    return task


def _remember(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    error = context.get("exception")
    if error is not None and isinstance(loop, SimLoop):
        loop.fail(error)
