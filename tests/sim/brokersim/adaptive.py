"""The adaptive controller in a story: its settings, a memory that comes and goes, and what must
hold between any two turns (law 5)."""

from __future__ import annotations

import random
from collections import Counter

from headgate.base.units import NS_PER_S
from headgate.broker.service import Broker
from headgate.testing.clock import ManualClock

PREFIX = "adaptivePublisherThrottling"
SETTINGS = (
    (f"{PREFIX}ObserveOnly", ("true", "false")),
    (f"{PREFIX}IntervalMs", ("50", "300", "1000")),
    (f"{PREFIX}Law", ("pressure", "drain")),
    (f"{PREFIX}MaxRateChangeFactor", ("0.1", "1")),
)
"""Dynamic ones that a story changes."""


def random_settings(rng: random.Random) -> dict[str, str]:
    """Whether there is a controller, and how it begins."""
    if rng.random() < 0.4:
        return {}
    return {
        f"{PREFIX}Enabled": "true",
        f"{PREFIX}IntervalMs": rng.choice(("100", "500")),
        f"{PREFIX}Law": rng.choice(("pressure", "drain")),
        f"{PREFIX}ObserveOnly": rng.choice(("false", "false", "true")),
        f"{PREFIX}BacklogLowWatermarkPct": rng.choice(("0.1", "0.75")),
    }


class TidalMemory:
    """Memory that is short in one of every few stretches of two seconds."""

    limit_bytes = 100

    def __init__(self, clock: ManualClock, seed: int) -> None:
        self._clock = clock
        self._seed = seed

    def used_bytes(self) -> int:
        """The same at the same instant of the same story."""
        stretch = self._clock.monotonic_ns() // (2 * NS_PER_S)
        return random.Random(f"memory {self._seed} {stretch}").choice((10, 10, 60, 80, 95))


def check(broker: Broker, seen: Counter[str]) -> list[str]:
    """What is wrong with the controller between two turns."""
    throttle = broker.adaptive
    limited = [t for t in broker.engine.topics.values() if t.publishing.adaptive_limit is not None]
    if throttle is None:
        return [f"{topic.name} is limited by nobody" for topic in limited]
    wrong = []
    seen["slowed"] += bool(limited)
    if throttle.status.failures:
        wrong.append(f"{throttle.status.failures} cycles failed")
    if throttle.settings.observe_only and limited:
        wrong.append(f"{len(limited)} topics are slowed in observe-only")
    for topic in limited:
        if topic.is_system or topic not in throttle._active or topic not in throttle._followed:
            wrong.append(f"{topic.name} is slowed, and the controller does not know it")
    gone = [topic for topic in throttle._active if topic.publishing.adaptive_limit is None]
    wrong += [f"{topic.name} counts as slowed, and is not" for topic in gone]
    seen["observed"] += throttle.settings.observe_only and bool(throttle._followed)
    return wrong
