"""The sweep that checks the counts of live bytes of each log against its index."""

from __future__ import annotations

from typing import Final

from headgate.base.units import S_PER_MINUTE
from headgate.broker.slices import Turns, in_slices
from headgate.storage.managed_logs import ManagedLogs

PERIOD_S: Final = 60.0 * S_PER_MINUTE


class SpaceCheck:
    """Checks all logs of one broker in slices."""

    def __init__(self, logs: ManagedLogs, turns: Turns) -> None:
        self._logs = logs
        self._turns = turns
        self.wrong_count = 0
        """Segments whose counts were wrong, each time that a check found them."""

    async def check(self) -> None:
        """Check every log once; log what is wrong."""
        self._turns.begin_turn()
        for managed in self._logs:
            self.wrong_count += await in_slices(self._turns, managed.log.check_space())
