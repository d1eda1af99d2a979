"""The sweep that forgets producers which deduplication has not seen for long."""

from __future__ import annotations

from typing import Final

from headgate.base.units import MS_PER_MINUTE, S_PER_MINUTE
from headgate.broker.slices import Turns, live_topics
from headgate.broker.sweeps.sweeps import Sweeps
from headgate.engine.engine import Engine
from headgate.policy.settings import Settings

_RUNS_PER_TIMEOUT: Final = 3
"""As in Pulsar."""


class DeduplicationSweep:
    """Forgets the producers of all topics that are disconnected for longer than
    ``brokerDeduplicationProducerInactivityTimeoutMinutes``."""

    def __init__(self, engine: Engine, settings: Settings, turns: Turns) -> None:
        self._engine = engine
        self._settings = settings
        self._turns = turns

    def add_to(self, sweeps: Sweeps) -> None:
        """Have the sweep run three times in each timeout."""
        sweeps.add("the deduplication sweep", self.forget, self._period_s)

    async def forget(self) -> None:
        """Walk over the loaded topics once."""
        self._turns.begin_turn()
        timeout_ms = (
            self._settings.brokerDeduplicationProducerInactivityTimeoutMinutes * MS_PER_MINUTE
        )
        names_max = self._settings.brokerDeduplicationMaxNumberOfProducers
        async for topic in live_topics(self._engine, self._turns):
            if topic.log.sequences is not None:
                topic.log.sequences.forget_inactive(self._engine.log_ms - timeout_ms, names_max)

    def _period_s(self) -> float:
        minutes = self._settings.brokerDeduplicationProducerInactivityTimeoutMinutes
        return minutes * S_PER_MINUTE / _RUNS_PER_TIMEOUT
