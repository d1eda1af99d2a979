"""Looks of a sweep at topics, in a line for each tenant.

A look may take long: a topic may have very many cursors, which its clients move meanwhile. In one
line the topics of all other tenants would wait for that, as long as these clients like.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final

from headgate.base.errors import InvariantError
from headgate.base.work_owner import WORK_OWNER
from headgate.broker.slices import Pace, Turns
from headgate.engine.topic import Topic

PATIENCE_S: Final = 3.0
"""How long a round of a sweep waits for its looks. Those that have not ended then go on beside the
next rounds."""

Measured = Callable[[str, Coroutine[Any, Any, None]], Awaitable[None]]
"""``TurnMeter.measured``."""


class TenantLines:
    """Looks at topics, at one of each tenant at a time. The tenants share the time of walks."""

    def __init__(
        self,
        name: str,
        look: Callable[[Topic, Pace], Awaitable[None]],
        turns: Turns,
        measured: Measured,
        ended: Callable[[], None] = lambda: None,
    ) -> None:
        """``name`` is the sweep's. ``look`` takes one look, and ``ended`` is called after the last
        one of a line."""
        self._name = name
        self._look = look
        self._ended = ended
        self._turns = turns
        self._measured = measured
        self._lines: dict[str, OrderedDict[Topic, None]] = {}
        """The topics that wait, by tenant."""
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._error: Exception | None = None
        self._is_stopped = False

    def add(self, topic: Topic) -> None:
        """Look at a topic when those of its tenant that wait have had their turn."""
        tenant = topic.name.tenant
        self._lines.setdefault(tenant, OrderedDict())[topic] = None
        if tenant not in self._tasks:
            task = asyncio.get_running_loop().create_task(self._run(tenant), name=self._name)
            task.add_done_callback(self._has_ended)
            self._tasks[tenant] = task

    def forget(self, topic: Topic) -> None:
        """Do not look at a topic that is unloaded."""
        line = self._lines.get(topic.name.tenant)
        if line is not None:
            line.pop(topic, None)

    async def wait(self) -> None:
        """Return when all looks have ended, or some time later at the latest.

        Raises the last error of a look that had one since the last time.
        """
        if self._tasks:
            await asyncio.wait(list(self._tasks.values()), timeout=PATIENCE_S)
            self._turns.begin_turn()
        error, self._error = self._error, None
        if error is not None:
            raise error

    def stop(self) -> None:
        """End all looks."""
        self._is_stopped = True
        for task in self._tasks.values():
            task.cancel()

    async def _run(self, tenant: str) -> None:
        WORK_OWNER.set(tenant)
        try:
            await self._measured(self._name, self._take_turns(tenant))
        finally:
            del self._tasks[tenant], self._lines[tenant]

    async def _take_turns(self, tenant: str) -> None:
        self._turns.begin_turn()
        pace, line = Pace(self._turns), self._lines[tenant]
        while line:
            topic, _ = line.popitem(last=False)
            try:
                await self._look(topic, pace)
            except InvariantError:
                raise
            except Exception as error:
                self._error = error
        self._ended()

    def _has_ended(self, task: asyncio.Task[None]) -> None:
        """Report to the loop's exception handler why a line ended early, as for a sweep: a broken
        invariant, at once. No round may wait for it, or ever come."""
        error: BaseException | None = None
        if not task.cancelled():
            error = task.exception()
        elif not self._is_stopped:
            error = InvariantError("looks of a sweep were cancelled while the broker runs")
        if error is not None:
            task.get_loop().call_exception_handler(
                {"message": f"{self._name} ended", "exception": error, "task": task}
            )
