"""An asyncio event loop on virtual time: deterministic, without sockets and threads.

Callbacks run in the order in which they became due, as on any loop; none takes time. When nothing
is ready the clock jumps to the next timer, so an hour of sleeping costs nothing. When there is no
timer either, nothing will ever happen again: that is an error of the test or a dead-lock, and
:class:`StalledError` says so at once.

An exception that nothing catches (in a callback, or in a task that is not awaited) ends the run,
so that no test passes over it.

The queues are written anew here, for a loop that never waits: those of :class:`BaseEventLoop` took
a fifth of a simulation's time. Callbacks run in exactly the same order.
"""

from __future__ import annotations

import asyncio
import contextvars
from asyncio.base_events import BaseEventLoop
from collections import deque
from collections.abc import Callable, Coroutine
from heapq import heapify, heappop, heappush
from typing import Any, Final, TypeVarTuple

from headgate.base.errors import HeadgateError
from headgate.base.units import NS_PER_S
from headgate.testing.clock import ManualClock

HOST: contextvars.ContextVar[int] = contextvars.ContextVar("host", default=0)
"""Which simulated machine a task belongs to; 0 is the test itself."""


Ts = TypeVarTuple("Ts")

_JUMP_MAX_S: Final = 86_400.0
"""The clock jumps no further at once, as asyncio waits no longer."""
_CANCELLED_MIN: Final = 100
"""With so many timers, those that were cancelled are dropped once they are half of all."""


class StalledError(HeadgateError):
    """The loop has no callback and no timer left, so that what it waits for cannot happen."""


class SimLoop(BaseEventLoop):
    """Virtual time, in nanoseconds of a :class:`ManualClock`."""

    def __init__(self, clock: ManualClock | None = None) -> None:
        """Run on ``clock``; on a new one when none is given."""
        super().__init__()
        self.clock = clock or ManualClock()
        self._scheduled: list[tuple[float, _Timer]] = []
        """The timers with their instants, the next one first."""
        self._ready: deque[Any] = deque()
        """The handles of callbacks that are due."""
        self._cancelled_count = 0
        """So many timers of ``_scheduled`` were cancelled."""
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
        for _, handle in list(self._scheduled):
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

    # What BaseEventLoop does with its queues.

    def call_soon(
        self,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> asyncio.Handle:
        """See asyncio."""
        self._check_closed()  # type: ignore[attr-defined]
        handle = _Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_at(
        self,
        when: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        """See asyncio."""
        self._check_closed()  # type: ignore[attr-defined]
        timer = _Timer(when, callback, args, self, context)
        heappush(self._scheduled, (when, timer))
        return timer

    def _run_once(self) -> None:
        """Run what is due; if nothing is, let time pass until the next timer."""
        self._drop_cancelled()
        if self._failure is not None:
            self.raise_failure()
        scheduled, ready = self._scheduled, self._ready
        if not (ready or self._stopping):  # type: ignore[attr-defined]
            if not scheduled:
                raise StalledError(
                    f"nothing is left to do at {self.time():.6f} s, and what was waited for "
                    "has not happened"
                )
            wait_s = min(scheduled[0][0] - self.time(), _JUMP_MAX_S)
            if wait_s > 0:
                # Rounded up: a timer must be due after the jump, or the loop would spin.
                self.clock.advance(int(wait_s * NS_PER_S) + 1)
        if scheduled:
            end_s = self.time() + self._clock_resolution  # type: ignore[attr-defined]
            while scheduled and scheduled[0][0] < end_s:
                timer = heappop(scheduled)[1]
                timer._scheduled = False
                ready.append(timer)
        for _ in range(len(ready)):
            handle = ready.popleft()
            if handle._cancelled:
                continue
            try:
                handle._context.run(handle._callback, *handle._args)
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as error:
                self.call_exception_handler(
                    {"message": "a callback failed", "exception": error, "handle": handle}
                )
        handle = None  # refers to nothing that an exception's traceback would hold

    def _drop_cancelled(self) -> None:
        """Drop timers that were cancelled: the first ones, and all if they are many."""
        scheduled = self._scheduled
        if len(scheduled) > _CANCELLED_MIN and 2 * self._cancelled_count > len(scheduled):
            scheduled[:] = [entry for entry in scheduled if not entry[1]._cancelled]
            heapify(scheduled)
            self._cancelled_count = 0
            return
        while scheduled and scheduled[0][1]._cancelled:
            heappop(scheduled)[1]._scheduled = False
            self._cancelled_count -= 1

    def _process_events(self, event_list: list[Any]) -> None:
        """There are no events but timers and callbacks."""

    def _write_to_self(self) -> None:
        """The loop never sleeps in a system call, so there is nothing to wake."""


class _Handle(asyncio.Handle):
    """A callback that is due. It keeps no traceback of its origin, whether or not the loop is in
    debug mode."""

    __slots__ = ()

    def __init__(
        self,
        callback: Callable[..., object],
        args: Any,
        loop: SimLoop,
        context: contextvars.Context | None,
    ) -> None:
        self._context = contextvars.copy_context() if context is None else context
        self._loop = loop
        self._callback = callback
        self._args = args
        self._cancelled = False
        self._repr = None
        self._source_traceback = None


class _Timer(_Handle, asyncio.TimerHandle):
    """A callback at an instant. Two are never equal, so that comparing two entries of the heap
    compares instants."""

    __slots__ = ()
    __eq__ = object.__eq__
    __hash__ = object.__hash__
    _loop: SimLoop

    def __init__(
        self,
        when: float,
        callback: Callable[..., object],
        args: Any,
        loop: SimLoop,
        context: contextvars.Context | None,
    ) -> None:
        _Handle.__init__(self, callback, args, loop, context)
        self._when = when
        self._scheduled = True

    def cancel(self) -> None:
        """See asyncio."""
        if not self._cancelled:
            self._cancelled = True
            self._loop._cancelled_count += self._scheduled
            self._callback = self._args = None  # type: ignore[assignment]  # as asyncio does


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
