"""Loads for :mod:`headgate.testing.adaptive_plant`: steps, swings, stops, bursts and mixtures.

Scenes begin with ten quiet seconds, then the load changes at instants that the seed picks, and at
the end producers want little for half a minute. Quotas are worth so many seconds of the largest
drain.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from headgate.base.units import MIB, MS_PER_S, NS_PER_MS
from headgate.flow.adaptive.cycle import AdaptiveSettings, Law
from headgate.testing.adaptive_plant import Plant, PlantTopic, Profile

DRAIN: Final = 1_000_000.0
"""Bytes a second that consumers can take at first."""
DEMAND: Final = 0.9 * DRAIN
LOAD_S: Final = 150.0
SCENE_S: Final = LOAD_S + 30.0
MEMORY_SCENE_S: Final = 100.0
QUOTAS_S: Final = (12, 30, 120)
USED_MIN: Final = 0.97
ACTIVATIONS_MAX: Final = 3
"""For each disturbance."""
LATE_NS_MAX: Final = 60 * NS_PER_MS

Load = tuple[Profile, Profile]
"""The demand of producers and the capacity of consumers."""


def _demand_step(factor: float, rng: random.Random) -> Load:
    return Profile([(0, DEMAND), (_soon(rng), DEMAND * factor), (90, DEMAND)]), _flat(DRAIN)


def _drain_step(factor: float, rng: random.Random) -> Load:
    return _flat(DEMAND), Profile([(0, DRAIN), (_soon(rng), DRAIN * factor), (90, DRAIN)])


def _stop(demand: float, rng: random.Random) -> Load:
    begins = _soon(rng)
    lasts = rng.uniform(5, 60)
    return _flat(demand), Profile([(0, DRAIN), (begins, 0), (begins + lasts, DRAIN)])


def _swing(low: float, high: float, rng: random.Random) -> Profile:
    half_s = rng.uniform(3, 20)
    steps, at_s, is_high = [(0.0, low)], _soon(rng), True
    while at_s < 120:
        steps.append((at_s, high if is_high else low))
        at_s, is_high = at_s + half_s, not is_high
    return Profile([*steps, (120.0, low)])


def _bursts(rng: random.Random) -> Load:
    steps, at_s = [(0.0, 0.5 * DRAIN)], _soon(rng)
    while at_s < 110:
        steps.append((at_s, rng.uniform(2, 4) * DRAIN))
        at_s += rng.uniform(1, 5)
        steps.append((at_s, 0.5 * DRAIN))
        at_s += rng.uniform(5, 20)
    return Profile(steps), _flat(DRAIN)


def _random(rng: random.Random) -> Load:
    def walk(unit: float, least: float, most: float) -> Profile:
        steps, at_s = [(0.0, unit)], _soon(rng)
        while at_s < 110:
            steps.append((at_s, unit * rng.uniform(least, most)))
            at_s += rng.uniform(4, 30)
        return Profile([*steps, (120.0, unit)])

    return walk(DEMAND, 0.0, 4.0), walk(DRAIN, 0.0, 1.0)


LOADS: Final[dict[str, Callable[[random.Random], Load]]] = {
    "demand x2": lambda rng: _demand_step(2, rng),
    "demand x4": lambda rng: _demand_step(4, rng),
    "drain x1/2": lambda rng: _drain_step(0.5, rng),
    "drain x1/4": lambda rng: _drain_step(0.25, rng),
    "consumers stop": lambda rng: _stop(DEMAND, rng),
    "consumers stop, demand x2": lambda rng: _stop(2 * DRAIN, rng),
    "demand swings x4": lambda rng: (_swing(DEMAND, 4 * DEMAND, rng), _flat(DRAIN)),
    "drain swings x4": lambda rng: (_flat(2 * DRAIN), _swing(DRAIN, DRAIN / 4, rng)),
    "both swing x4": lambda rng: (
        _swing(DEMAND, 4 * DEMAND, rng), _swing(DRAIN, DRAIN / 4, rng)
    ),
    "bursts": _bursts,
    "always too much": lambda _: (_flat(3 * DRAIN), _flat(DRAIN)),
    "at random": _random,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Outcome:
    """The measurements of one scene."""

    load: str
    law: Law
    quota_s: int
    highest: float
    """The largest backlog, or the oldest message, as a part of the quota."""
    used: float
    """Part of the consumers' capacity in use while producers waited; 1 if none waited."""
    activations: int
    disturbances: int
    held_s: float

    def broken(self) -> list[str]:
        """The guarantees of law drain that the scene breaks (law 5.5)."""
        found = []
        if self.highest > 1:
            found.append("above the quota")
        if self.used < USED_MIN:
            found.append("drain not used")
        if self.activations > ACTIVATIONS_MAX * self.disturbances:
            found.append("too many activations")
        return found


def scene(
    load: str,
    law: Law,
    quota_s: int,
    seed: int,
    *,
    holds: bool = False,
    lumps: bool = False,
    timed: bool = False,
) -> PlantTopic:
    """Play one topic through ``load`` to its end. ``holds``: its size quota stops producers
    too. ``lumps``: consumers acknowledge once a second. ``timed``: a time quota of so many
    seconds in place of the size quota."""
    rng = random.Random(f"{load} {quota_s} {seed}")
    demand, capacity = LOADS[load](rng)
    topic = PlantTopic(
        demand.then(LOAD_S, DEMAND / 3),
        capacity.then(LOAD_S, DRAIN),
        size_limit=None if timed else round(quota_s * capacity.largest),
        age_limit_ms=quota_s * MS_PER_S if timed else None,
        holds=holds,
        acknowledges_every_s=1.0 if lumps else 0.1,
    )
    settings = AdaptiveSettings(law=law)
    plant = Plant([topic], settings, late_ns=lambda: rng.randrange(LATE_NS_MAX))
    plant.run(SCENE_S)
    return topic


def outcome(
    load: str,
    law: Law,
    quota_s: int,
    seed: int,
    *,
    holds: bool = False,
    lumps: bool = False,
    timed: bool = False,
) -> Outcome:
    """Play a scene and measure it."""
    topic = scene(load, law, quota_s, seed, holds=holds, lumps=lumps, timed=timed)
    return Outcome(
        load=load,
        law=law,
        quota_s=quota_s,
        highest=max(topic.use(look) for look in topic.looks),
        used=1 - topic.wasted_bytes / topic.offered_bytes if topic.offered_bytes else 1.0,
        activations=topic.activations,
        disturbances=topic.disturbances,
        held_s=topic.held_s,
    )


def memory_scene(law: Law, seed: int) -> Plant:
    """Play fifty light topics, then six heavy ones, on a disk that is slow for 40 s. Unwritten
    bytes take memory."""
    rng = random.Random(f"memory {seed}")
    light = [_memory_topic(rng.uniform(1_000, 20_000)) for _ in range(50)]
    heavy = [_memory_topic(rng.uniform(4e6, 8e6)) for _ in range(6)]
    wanted = sum(topic.demand.largest for topic in heavy)
    slow_s = _soon(rng)
    disk = Profile(
        [(0, 2 * wanted), (slow_s, rng.uniform(0.3, 0.7) * wanted), (slow_s + 40, 2 * wanted)]
    )
    plant = Plant(
        [*light, *heavy],
        AdaptiveSettings(law=law),
        disk=disk,
        memory_base=_flat(400 * MIB),
        late_ns=lambda: rng.randrange(LATE_NS_MAX),
    )
    plant.run(MEMORY_SCENE_S)
    return plant


def _memory_topic(rate: float) -> PlantTopic:
    return PlantTopic(_flat(rate), _flat(10 * rate), message_bytes=500)


def _flat(rate: float) -> Profile:
    return Profile([(0.0, rate)])


def _soon(rng: random.Random) -> float:
    return rng.uniform(10, 12)
