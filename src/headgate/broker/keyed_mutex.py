"""A mutex for each key: changes of one topic or one subscription run one after the other.

A change takes several turns of the loop. It runs to its end even if its caller is cancelled, for
example because the client disconnects: nothing would complete it later. One that needs no
completion may end with its caller: what it holds is charged to that client alone.

Those that wait stand in line. When a change has ended, the first one continues, not all of them: of
thousands all but one would wait again, after each change. Those that only wait until nothing runs
continue a few in each iteration of the loop.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Hashable
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

T = TypeVar("T")

WOKEN_MAX: Final = 32
"""Coroutines that continue in one iteration of the loop. Each may carry out a command."""


class _Waiting(NamedTuple):
    turn: asyncio.Future[None]
    runs: bool
    """Whether it will run something. Then whoever is behind it waits for that."""


class KeyedMutex:
    """One mutex for each key that is in use."""

    def __init__(self) -> None:
        self._tasks: dict[Hashable, asyncio.Task[Any]] = {}
        self._lines: dict[Hashable, deque[_Waiting]] = {}
        """Those that wait. While a line is not empty, something runs under its key, or the first
        in line continues in the next iteration of the loop."""

    def __len__(self) -> int:
        """Keys in use."""
        return len(self._tasks)

    async def when_idle(self, key: Hashable) -> None:
        """Return when nothing runs under ``key``; at once if nothing does."""
        if key in self._tasks:
            await self._wait_in_line(key, runs=False)

    async def run_alone(
        self,
        key: Hashable,
        work: Callable[[], Coroutine[Any, Any, T]],
        *,
        ends_with_caller: bool = False,
    ) -> T:
        """Run ``work`` when nothing else runs under ``key``, to its end even if the caller is
        cancelled, unless it ``ends_with_caller``.

        Raises what ``work`` raises.
        """
        if key in self._tasks:
            await self._wait_in_line(key, runs=True)
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
            if ends_with_caller:
                task.cancel()
            raise
        finally:
            del ended, task  # an error's traceback leads to this frame: they would be a cycle

    def _finished(self, key: Hashable, ended: asyncio.Future[T], task: asyncio.Task[T]) -> None:
        del self._tasks[key]
        tell_result(task, ended)
        self._wake(key)  # behind the caller, which completes its change before the next begins

    async def _wait_in_line(self, key: Hashable, *, runs: bool) -> None:
        """Return when nothing runs under ``key``, after those that came before."""
        loop = asyncio.get_running_loop()
        has_waited = False
        while key in self._tasks:
            waiting = _Waiting(loop.create_future(), runs)
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
        line = self._lines.get(key)
        if line is None or key in self._tasks:
            return
        woken = 0
        while line and woken < WOKEN_MAX:
            waiting = line.popleft()
            if waiting.turn.done():
                continue  # its caller was cancelled
            waiting.turn.set_result(None)
            woken += 1
            if waiting.runs:
                break
        else:
            if line:
                asyncio.get_running_loop().call_soon(self._wake, key)
        if not line:
            del self._lines[key]


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
