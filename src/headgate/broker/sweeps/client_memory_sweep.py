"""The sweep that measures what connections hold."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from headgate.broker.client_memory import ClientMemory, Holder
from headgate.broker.work.scheduler import JobClass, WorkScheduler


class MeasuredConnections(Collection[Holder], Protocol):
    """The connections of one broker."""

    @property
    def closing(self) -> Collection[Holder]:
        """Those that ended, but whose peers have not read everything."""


class ClientMemorySweep:
    """Measures all connections of one broker, in slices between which the loop serves others."""

    def __init__(
        self, memory: ClientMemory, connections: MeasuredConnections, work: WorkScheduler
    ) -> None:
        self._memory = memory
        self._connections = connections
        self._work = work

    async def measure(self) -> None:
        """Measure once, and act on it."""
        connections = self._connections
        steps = self._memory.measure(connections, connections.closing)
        await self._work.run("measuring what clients hold", JobClass.UPKEEP, steps)
