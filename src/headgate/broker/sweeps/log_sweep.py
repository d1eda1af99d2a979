"""The sweep that maintains the logs, about once a second."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from headgate.engine.engine import Engine
from headgate.storage.disk_monitor import DiskMonitor
from headgate.storage.identity_writer import IdentityWriter
from headgate.storage.managed_logs import ManagedLogs


class StateLogger(Protocol):
    """A part that logs when a state begins and when it ends."""

    def log_if_due(self) -> None:
        """Write the lines that are due. Call it about once a second."""


class LogSweep:
    """Follows the clocks, and runs maintenance for the logs of one broker. It waits for nothing:
    trimming very many topics may take longer than its period."""

    def __init__(
        self,
        engine: Engine,
        logs: ManagedLogs,
        identity_writer: IdentityWriter,
        update_clocks: Callable[[], None],
        disk: DiskMonitor,
        state_loggers: Sequence[StateLogger],
    ) -> None:
        """``update_clocks`` reads the clocks again and begins a turn."""
        self._engine = engine
        self._logs = logs
        self._identity_writer = identity_writer
        self._update_clocks = update_clocks
        self._disk = disk
        self._state_loggers = state_loggers

    async def run(self) -> None:
        """Seal segments, write checkpoints and delete files where that is due."""
        self._update_clocks()
        self._identity_writer.write_if_changed(self._engine.now_ns)
        logs = self._logs
        if logs.telemetry is not None:
            logs.telemetry.log.yield_space(is_needed=logs.main.log.full)
        logs.run_maintenance()
        self._disk.refresh()
        for state_logger in self._state_loggers:
            state_logger.log_if_due()
