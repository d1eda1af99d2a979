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

    def add(self, topic: Topic) -> None:
        """Look at a topic when those of its tenant that wait have had their turn."""
        tenant = topic.name.tenant
        self._lines.setdefault(tenant, OrderedDict())[topic] = None
        if tenant not in self._tasks:
            task = asyncio.get_running_loop().create_task(self._run(tenant), name=self._name)
            task.add_done_callback(_forget_error)
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
            tasks, until = list(self._tasks.values()), asyncio.FIRST_EXCEPTION
            await asyncio.wait(tasks, timeout=PATIENCE_S, return_when=until)
            self._turns.begin_turn()
        error, self._error = self._error, None
        if error is not None:
            raise error

    def stop(self) -> None:
        """End all looks."""
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
            except InvariantError as error:
                self._error = error
                raise
            except Exception as error:
                if not isinstance(self._error, InvariantError):
                    self._error = error
        self._ended()


def _forget_error(task: asyncio.Task[None]) -> None:
    """The next round raises it."""
    if not task.cancelled():
        task.exception()
