"""The sweep that maintains the logs, about once a second."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from headgate.broker.sweeps.trimming import Trimming
from headgate.engine.engine import Engine
from headgate.storage.identity_writer import IdentityWriter
from headgate.storage.managed_logs import ManagedLogs


class Watched(Protocol):
    """A part that logs when a state begins and when it ends."""

    def watch(self) -> None:
        """Write the lines that are due. Call it about once a second."""


class LogSweep:
    """Follows the clocks, makes space and runs maintenance for the logs of one broker."""

    def __init__(
        self,
        engine: Engine,
        logs: ManagedLogs,
        trimming: Trimming,
        identity_writer: IdentityWriter,
        follow_clocks: Callable[[], None],
        watched: Sequence[Watched],
    ) -> None:
        """``follow_clocks`` measures the clocks again and begins a turn."""
        self._engine = engine
        self._logs = logs
        self._trimming = trimming
        self._identity_writer = identity_writer
        self._follow_clocks = follow_clocks
        self._watched = watched

    async def run(self) -> None:
        """Seal segments, write checkpoints and delete files where that is due. While the disk is
        full, trim acknowledged entries at once."""
        self._follow_clocks()
        self._identity_writer.write_if_changed(self._engine.now_ns)
        logs = self._logs
        if logs.telemetry is not None:
            logs.telemetry.log.leave_room(leave=logs.main.log.full)
        await self._trimming.trim_if_needed()
        logs.run_maintenance()
        for watched in self._watched:
            watched.watch()
