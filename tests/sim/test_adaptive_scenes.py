"""Both laws of adaptive publish throttling in closed loop, under loads of every kind.

A seeded sample of what ``./dev soak`` plays at length: steps, swings, stops and bursts against
quotas of 12, 30 and 120 s of drain, and a disk that goes slow under many topics.
"""

from __future__ import annotations

from itertools import pairwise

import pytest

from headgate.flow.adaptive.cycle import Decision, DecisionKind, Law, Rule
from headgate.testing.adaptive_plant import PlantTopic
from headgate.testing.adaptive_scenes import LOAD_S, LOADS, QUOTAS_S, memory_scene, outcome, scene

SEEDS = range(2)
DEMAND_LOADS = ("demand x2", "demand x4", "demand swings x4", "bursts", "always too much")
"""In which consumers do always the same."""


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("quota_s", QUOTAS_S)
def test_law_drain_keeps_its_promises(load: str, quota_s: int) -> None:
    """Rule 5.5: without the quota's own hold, never above it; the drain used; few activations."""
    for seed in SEEDS:
        for lumps in (False, True):
            found = outcome(load, Law.DRAIN, quota_s, seed, lumps=lumps)
            assert not found.broken(), found


@pytest.mark.parametrize("load", DEMAND_LOADS)
@pytest.mark.parametrize("quota_s", QUOTAS_S)
def test_law_drain_keeps_a_time_quota_whatever_producers_do(load: str, quota_s: int) -> None:
    """Rule 5.5. What consumers do is another matter: when they slow down, what was accepted
    before is there, and grows old."""
    for seed in SEEDS:
        found = outcome(load, Law.DRAIN, quota_s, seed, timed=True)
        assert not found.broken(), found


@pytest.mark.parametrize("law", Law)
@pytest.mark.parametrize("load", LOADS)
def test_every_scene_is_reported_by_its_decisions(load: str, law: Law) -> None:
    """Rules 5.1, 5.2 and 5.6: bounded steps, a floor, one way up, an end."""
    topic = scene(load, law, 12, 7, holds=True)
    quota = topic.size_limit or 0
    assert max(look.backlog_bytes for look in topic.looks) <= quota
    decisions = [decision for _, decision in topic.decisions]
    for before, after in pairwise([None, *decisions]):
        assert after.old == (before.new if before else None)
        _check_step(after, law)
    if decisions:
        assert decisions[-1].kind is DecisionKind.DEACTIVATED, topic.decisions[-1]
    assert topic.limit == (decisions[-1].new if decisions else None)


def _check_step(decision: Decision, law: Law) -> None:
    natural = decision.inputs.natural_bytes_per_s or 0.0
    step = decision.step_factor * max(natural, decision.inputs.drain_bytes_per_s or 0.0) + 2
    old, new = decision.old, decision.new
    if law is Law.PRESSURE:
        old_bytes = natural if old is None else old.bytes_per_s or 0
        new_bytes = natural if new is None else new.bytes_per_s or 0
        # A limit that hardly moved was not reported; it may have crept for a few cycles.
        assert abs(new_bytes - old_bytes) <= step + 0.06 * natural, decision
        assert new_bytes >= 0.1 * natural - 1
    elif old is not None and new is not None:
        assert (new.bytes_per_s or 0) - (old.bytes_per_s or 0) <= step * 1.05, decision
    if new is None:
        assert decision.rule is Rule.CLEAR


def test_law_pressure_relies_on_the_quotas_own_hold() -> None:
    """It passes a small quota where consumers stop; with the hold nothing passes (rule 4.2)."""
    alone = outcome("consumers stop, demand x2", Law.PRESSURE, 12, 0)
    assert alone.highest > 1.2
    held = outcome("consumers stop, demand x2", Law.PRESSURE, 12, 0, holds=True)
    assert held.highest <= 1
    assert held.held_s > 0
    drain = outcome("consumers stop, demand x2", Law.DRAIN, 12, 0, holds=True)
    assert drain.highest < 0.8
    assert drain.held_s == 0


@pytest.mark.parametrize("law", Law)
@pytest.mark.parametrize("seed", SEEDS)
def test_memory_is_kept_and_only_those_who_take_it_are_slowed(law: Law, seed: int) -> None:
    """Rule 5.3: fifty light topics keep their rate while six heavy ones fill the memory."""
    plant = memory_scene(law, seed)
    light, heavy = plant.topics[:50], plant.topics[50:]
    assert 0.70 < plant.memory_max / plant.memory_limit < 0.90
    assert not any(topic.decisions for topic in light)
    for topic in heavy:
        assert topic.activations == 1
        assert topic.limit is None
        assert topic.decisions[-1][1].rule is Rule.CLEAR
    assert plant.pressures[-1] == 0


def test_what_is_learned_is_what_producers_want() -> None:
    """Rule 5.4: after limits, holds and the bursts that follow them; it falls slowly at the
    quiet end."""
    for law in Law:
        for load in ("consumers stop", "drain swings x4", "always too much"):
            topic = scene(load, law, 30, 3, holds=True)
            wanted = topic.demand.at(LOAD_S - 1)
            learned = topic.control.natural.bytes
            assert 0.3 * wanted < learned < 2.1 * wanted, (law, load)


def test_the_same_seed_gives_the_same_scene() -> None:
    first, second = (_fingerprint(scene("at random", Law.DRAIN, 12, 5)) for _ in range(2))
    assert first == second
    assert first != _fingerprint(scene("at random", Law.DRAIN, 12, 6))


def _fingerprint(topic: PlantTopic) -> list[tuple[float, str]]:
    return [(second, str(decision.new)) for second, decision in topic.decisions]
