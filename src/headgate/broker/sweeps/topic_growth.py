"""The sweep that measures which topics' retained messages grow most."""

from __future__ import annotations

from typing import Final

from headgate.base.units import NS_PER_MS, S_PER_MINUTE
from headgate.broker.slices import Turns, live_topics
from headgate.engine.engine import Engine
from headgate.flow.disk_forecast import SHORT_NS
from headgate.flow.topic_growth import TopicGrowths

PERIOD_S: Final = 1.0 * S_PER_MINUTE
FIRST_PERIOD_S: Final = 5.0
"""The first round follows soon after the start: growth needs two."""
WINDOW_MS: Final = SHORT_NS // NS_PER_MS


class TopicGrowthSweep:
    """Measures the topics of one broker in slices."""

    def __init__(self, engine: Engine, turns: Turns) -> None:
        self._engine = engine
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
            begin = log.ordinal_received_at_or_after(since_ms)
            received_bytes = log.live_bytes(begin, end)
            growths.add(
                topic.name.full, log.number, received_bytes, log.live_bytes(first, end),
                engine.now_ns,
            )  # fmt: skip
        growths.end_round()
