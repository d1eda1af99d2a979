"""A mutex for each key: changes of one topic or one subscription run one after the other.

A change takes several turns of the loop. It runs to its end even if its caller is cancelled, for
example because the client disconnects: nothing would complete it later. One that needs no
completion may end with its caller: what it holds is charged to that client alone.

Those that wait stand in line. When a change has ended, the first one continues, not all of them: of
thousands all but one would wait again, after each change. Those that only wait until nothing runs
continue a few in each iteration of the loop, whatever keys they wait for, and their owners take
turns.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Hashable
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from headgate.base.fair_queue import FairQueue
from headgate.base.work_owner import NO_TENANT

T = TypeVar("T")

WOKEN_MAX: Final = 32
"""Coroutines that continue in one iteration of the loop. Each may carry out a command."""


class _Waiting(NamedTuple):
    turn: asyncio.Future[None]
    runs: bool
    """Whether it will run something. Then whoever is behind it waits for that."""
    owner: str
    """The tenant for which it waits."""


class KeyedMutex:
    """One mutex for each key that is in use."""

    def __init__(self) -> None:
        self._tasks: dict[Hashable, asyncio.Task[Any]] = {}
        self._lines: dict[Hashable, deque[_Waiting]] = {}
        """Those that wait. While a line is not empty, something runs under its key, or the first
        in line continues in one of the next iterations of the loop."""
        self._free: FairQueue[Hashable] = FairQueue()
        """Keys under which nothing runs, and whose first in line only waits for that, by tenant."""
        self._free_keys: set[Hashable] = set()
        """The same keys."""
        self._woken_left = WOKEN_MAX
        """How many of those may continue in this iteration of the loop."""

    def __len__(self) -> int:
        """Keys in use."""
        return len(self._tasks)

    async def when_idle(self, key: Hashable, owner: str = NO_TENANT) -> None:
        """Return when nothing runs under ``key``; at once if nothing does. Those that wait
        for many keys continue a few at once, in which the tenants ``owner`` take turns."""
        if key in self._tasks:
            await self._wait_in_line(key, runs=False, owner=owner)

    async def run_alone(
        self,
        key: Hashable,
        work: Callable[[], Coroutine[Any, Any, T]],
        *,
        ends_with_caller: Callable[[], bool] = lambda: False,
    ) -> T:
        """Run ``work`` when nothing else runs under ``key``, to its end even if the caller is
        cancelled, unless it ``ends_with_caller``, which is asked then.

        Raises what ``work`` raises.
        """
        if key in self._tasks:
            await self._wait_in_line(key, runs=True, owner=NO_TENANT)
        loop = asyncio.get_running_loop()
        task = loop.create_task(work())
        self._tasks[key] = task
        # As asyncio.shield, with one callback in the place of three: crowds of consumers create
        # their subscriptions at once.
        ended: asyncio.Future[T] = loop.create_future()
        task.add_done_callback(partial(self._finished, key, ended))
        try:
            return await ended
        except asyncio.CancelledError:
            if ends_with_caller():
                task.cancel()
            raise
        finally:
            del ended, task  # an error's traceback leads to this frame: they would be a cycle

    def _finished(self, key: Hashable, ended: asyncio.Future[T], task: asyncio.Task[T]) -> None:
        del self._tasks[key]
        tell_result(task, ended)
        self._wake(key)  # behind the caller, which completes its change before the next begins

    async def _wait_in_line(self, key: Hashable, *, runs: bool, owner: str) -> None:
        """Return when nothing runs under ``key``, after those that came before."""
        loop = asyncio.get_running_loop()
        has_waited = False
        while key in self._tasks:
            waiting = _Waiting(loop.create_future(), runs, owner)
            line = self._lines.setdefault(key, deque())
            # One that did not wait may have begun in the same iteration: it keeps its place.
            (line.appendleft if has_waited else line.append)(waiting)
            has_waited = True
            try:
                await waiting.turn
            except asyncio.CancelledError:
                if runs and not waiting.turn.cancelled():
                    self._wake(key)  # it had its turn, and will not use it
                raise

    def _wake(self, key: Hashable) -> None:
        """Let the first in line continue, unless something runs."""
        self._call_first(key)
        self._wake_some()

    def _call_first(self, key: Hashable) -> None:
        """Let the first in line continue if it will run something; else note that it may."""
        line = self._lines.get(key)
        if line is None or key in self._tasks or key in self._free_keys:
            return
        while line and line[0].turn.done():
            line.popleft()  # its caller was cancelled
        if line and not line[0].runs:
            self._free_keys.add(key)
            self._free.add(line[0].owner, key)
        elif line:
            line.popleft().turn.set_result(None)
        if not line:
            del self._lines[key]

    def _wake_some(self) -> None:
        """Let those continue that wait until nothing runs, as many as may in this iteration."""
        while self._free and self._woken_left:
            key = self._free.take()
            self._free_keys.remove(key)
            line = self._lines[key]
            if not (key in self._tasks or line[0].runs or line[0].turn.done()):
                line.popleft().turn.set_result(None)
                self._count_woken()
            self._call_first(key)

    def _count_woken(self) -> None:
        if self._woken_left == WOKEN_MAX:
            asyncio.get_running_loop().call_soon(self._begin_iteration)
        self._woken_left -= 1

    def _begin_iteration(self) -> None:
        self._woken_left = WOKEN_MAX
        self._wake_some()


def tell_result(task: asyncio.Task[T], future: asyncio.Future[T]) -> None:
    """Give what an ended task returned or raised to one that waits for it, unless that has left."""
    error = None if task.cancelled() else task.exception()  # marks it as retrieved
    if future.done():
        pass  # its caller was cancelled
    elif task.cancelled():
        future.cancel()
    elif error is not None:
        future.set_exception(error)
    else:
        future.set_result(task.result())
