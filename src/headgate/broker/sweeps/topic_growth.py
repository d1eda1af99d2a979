"""The sweep that measures which topics' retained messages grow most."""

from __future__ import annotations

import logging
from functools import partial
from typing import Final

from headgate.base.errors import StorageError
from headgate.base.units import NS_PER_MS, S_PER_MINUTE
from headgate.broker.slices import Turns, live_topics
from headgate.engine.engine import Engine
from headgate.engine.topic import Topic
from headgate.flow.disk_forecast import SHORT_NS
from headgate.flow.topic_growth import TopicGrowths
from headgate.storage.managed_logs import ManagedLogs

logger = logging.getLogger("headgate.sweeps")

PERIOD_S: Final = 1.0 * S_PER_MINUTE
FIRST_PERIOD_S: Final = 5.0
"""The first round follows soon after the start: growth needs two."""
WINDOW_MS: Final = SHORT_NS // NS_PER_MS


class TopicGrowthSweep:
    """Measures the topics of one broker in slices."""

    def __init__(self, engine: Engine, logs: ManagedLogs, turns: Turns) -> None:
        self._engine = engine
        self._logs = logs
        self._turns = turns
        self.growths = TopicGrowths()
        self._rounds_count = 0

    def period_s(self) -> float:
        """Seconds until the next round."""
        return PERIOD_S if self._rounds_count else FIRST_PERIOD_S

    async def measure(self) -> None:
        """Measure every live topic once."""
        self._turns.begin_turn()
        self._rounds_count += 1
        engine, growths = self._engine, self.growths
        growths.begin_round()
        async for topic in live_topics(engine, self._turns):
            log = topic.log
            first, end = log.first, log.end
            since_ms = engine.log_ms - WINDOW_MS
            if first >= end or log.received_ms(end - 1) < since_ms:
                continue  # nothing was received in the window, so nothing grew
            find = partial(_received_and_retained, topic, since_ms)
            try:
                received, retained = await self._logs.of(topic).index.look_up(find, is_upkeep=True)
            except StorageError as error:
                # The others are measured all the same; this topic shows as one that does not grow.
                logger.warning("the growth of %s is unknown: %s", topic.name.full, error)
                continue
            if topic.is_live:
                growths.add(topic.name.full, log.number, received, retained, engine.now_ns)
        growths.end_round()


def _received_and_retained(topic: Topic, since_ms: int) -> tuple[int, int]:
    """Bytes of a topic's entries received since a time of the log, and of all that it retains."""
    log = topic.log
    begin = log.ordinal_received_at_or_after(since_ms)
    return log.live_bytes(begin, log.end), log.live_bytes(log.first, log.end)
