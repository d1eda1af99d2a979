"""Synthetic telemetry of backlogs that approach their quotas over hours."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from headgate.base.units import GIB, MIB
from tests.unit.pipeline.play import T0, S
from tests.unit.pipeline.quota_play import NS, Facts, QuotaBroker, oldest, quota

MINUTES = 200
"""How long the broker of :func:`forecast_play` runs, both boots together."""

_NOISE = np.random.default_rng(11).normal(0, 1, MINUTES + 60)
_STEPS = np.cumsum(np.random.default_rng(12).normal(0.2, 1.5, MINUTES + 60))


def steady(seconds: int) -> Facts:
    """10 MiB a minute."""
    return {**quota("size", 4 * GIB, "producer_request_hold"), "backlog_bytes": seconds * MIB // 6}


def noisy(seconds: int) -> Facts:
    """The same under noise."""
    noise = int(60 * MIB * _NOISE[seconds // 60])
    return {
        **quota("size", 4 * GIB, "producer_request_hold"),
        "backlog_bytes": max(seconds * MIB // 6 + 200 * MIB + noise, 0),
    }


def wandering(seconds: int) -> Facts:
    """A random walk between half and all of its limit."""
    level = int((700 + 8 * _STEPS[seconds // 60]) * MIB)
    return {
        **quota("size", 900 * MIB, "producer_exception"),
        "backlog_bytes": level,
        "quota_size_breach_ns": 0 if level >= 900 * MIB else None,
    }


def evicted(seconds: int) -> Facts:
    """A tenth goes every 25 minutes."""
    acts = seconds // 1_500
    return {
        **quota("size", 1_000 * MIB, "consumer_backlog_eviction"),
        "backlog_bytes": (900 + (seconds - 1_500 * acts) * 100 // 1_500) * MIB,
        "eviction_size_acts": acts,
        "eviction_size_messages": 100 * acts,
        "eviction_size_bytes": 100 * MIB * acts,
        "quota_size_breach_ns": (1_500 - seconds % 1_500) * S,
    }


def changing(seconds: int) -> Facts:
    """No quota for an hour, then one, later a lower one."""
    limit = quota("size", (6 if seconds < 7_500 else 3) * GIB, "producer_exception")
    return {**(limit if seconds > 3_660 else {}), "backlog_bytes": GIB + seconds * MIB // 10}


def aging(seconds: int) -> Facts:
    """Consumers that take nine tenths of what comes, and a size quota far away."""
    return {
        **quota("time", 1_500 * S, "consumer_backlog_eviction"),
        **quota("size", 64 * GIB, "producer_exception"),
        **oldest(seconds // 10, "slow"),
        "backlog_bytes": GIB + seconds * 1_000,
    }


def cleared(seconds: int) -> Facts:
    """Cleared every 70 minutes, some minutes without a known oldest message."""
    return {
        **quota("time", 7_200 * S, "producer_exception"),
        **({} if seconds % 4_200 < 300 else oldest(seconds % 4_200, "lazy")),
        "backlog_bytes": (seconds % 4_200) * MIB,
    }


FORECAST_TOPICS: Mapping[str, Callable[[int], Facts]] = {
    f"{NS}{topic.__name__}": topic
    for topic in (steady, noisy, wandering, evicted, changing, aging, cleared)
}


def forecast_play() -> list[bytes]:
    """From 25 minutes before a full hour on, with two lost batches and a restart."""
    first = QuotaBroker(FORECAST_TOPICS, start_ns=T0 + 2_100 * S)
    messages = [m for _ in range(MINUTES - 45) for m in first.window(60)]
    second = QuotaBroker(
        {name: _later(facts) for name, facts in FORECAST_TOPICS.items()},
        start_ns=first.now_ns,
        boot="boot-2",
    )
    messages += [m for _ in range(45) for m in second.window(60)]
    return [m for i, m in enumerate(messages) if i not in (90, 91)]


def _later(facts: Callable[[int], Facts]) -> Callable[[int], Facts]:
    """What a topic tells after the restart: levels go on, counts begin anew."""
    before_s = (MINUTES - 45) * 60
    before: dict[str, Any] = facts(before_s)

    def told(seconds: int) -> Facts:
        now = facts(before_s + seconds)
        counts = {name: now[name] - before[name] for name in now if name.startswith("eviction_")}
        return {**now, **counts}

    return told
