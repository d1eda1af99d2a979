"""Answers of the agent that take long, computed in threads of which readers take turns."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from headgate.agent.web_requests import RefusedError
from headgate.base.fair_queue import FairQueue
from headgate.base.sparse_counter import SparseCounter

WAITING_MAX: Final = 32
"""Requests that are computed or wait for that; further ones are refused. A reader has no more of
them than are free for others."""
AT_ONCE: Final = 2
"""Answers that are computed at the same time."""

_T = TypeVar("_T")


class _Job(NamedTuple):
    work: Callable[[], Any]
    done: asyncio.Future[Any]


class WebTurns:
    """Computes answers in threads. While some wait, readers take turns: so the many requests of one
    hold up that reader alone. All methods belong to the event loop."""

    def __init__(self, executor: Executor) -> None:
        """``executor`` should have :data:`AT_ONCE` threads."""
        self._executor = executor
        self._waiting: FairQueue[tuple[str, _Job]] = FairQueue()
        self._by_reader: SparseCounter[str] = SparseCounter()
        self._running = 0

    async def computed(self, reader: str, work: Callable[[], _T]) -> _T:
        """The result of ``work``, which runs in a thread when it is the turn of ``reader``.

        Raises:
            RefusedError: too many requests wait, of all or of this reader.
        """
        taken = len(self._waiting) + self._running
        if taken + self._by_reader[reader] >= WAITING_MAX:
            raise RefusedError(503, f"{taken} requests wait already: try again later")
        job = _Job(work, asyncio.get_running_loop().create_future())
        self._by_reader[reader] += 1
        self._waiting.add(reader, (reader, job))
        self._begin_some()
        result: _T = await job.done
        return result

    def _begin_some(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting and self._running < AT_ONCE:
            reader, job = self._waiting.take()
            if job.done.done():
                # Its request was given up.
                self._by_reader[reader] -= 1
                continue
            self._running += 1
            running = loop.run_in_executor(self._executor, job.work)
            running.add_done_callback(partial(self._ended, reader, job))

    def _ended(self, reader: str, job: _Job, found: asyncio.Future[Any]) -> None:
        self._running -= 1
        self._by_reader[reader] -= 1
        self._begin_some()
        if found.cancelled():
            job.done.cancel()
            return
        error = found.exception()
        if job.done.done():
            return  # its request was given up meanwhile
        if error is None:
            job.done.set_result(found.result())
        else:
            job.done.set_exception(error)
