"""Limits as rows have them, and what counts as another one."""

from __future__ import annotations

from dataclasses import replace

from headgate.base.units import NS_PER_S
from headgate.flow.limits.precedence import (
    DISPATCH_KEYS,
    EffectiveLimit,
    RatePolicy,
    effective_limit,
)
from headgate.flow.limits.rate_limit import Level, PerSecond
from headgate.telemetry.records.limit_track import NO_LIMIT, LimitTrack, LimitValues, limit_values


def of_topic(messages: int, size_bytes: int = 0, *, relative: bool = False) -> EffectiveLimit:
    policy = RatePolicy(messages, size_bytes, relative=relative)
    return effective_limit(DISPATCH_KEYS[Level.TOPIC], topic_policy=policy)


def enforced(effective: EffectiveLimit) -> EffectiveLimit:
    """While 100 messages a second are published."""
    assert effective.limit is not None
    return replace(effective, limit=effective.limit.above(PerSecond(100.0, 0.0)))


def test_a_limit_as_a_row_has_it() -> None:
    values = limit_values(of_topic(50, 1_000))
    assert values == LimitValues(50, 1_000, NS_PER_S, "topic policy")
    assert limit_values(effective_limit(DISPATCH_KEYS[Level.TOPIC])) == NO_LIMIT
    assert limit_values(of_topic(0)) == NO_LIMIT


def test_one_that_moves_says_so_whatever_it_amounts_to() -> None:
    effective = of_topic(50, relative=True)
    for found in (effective, enforced(effective)):
        assert limit_values(found).source == "topic policy, above the publish rate"
    assert limit_values(enforced(effective)).messages == 150


def test_only_another_setting_is_a_change() -> None:
    track = LimitTrack(5)
    assert track.change(of_topic(50)) is None
    assert (track.values.messages, track.changed_ns, track.moves) == (50, 0, False)
    track.changed_ns = 7
    assert track.change(of_topic(50)) is None
    track.changed_ns = 9
    change = track.change(of_topic(60, relative=True))
    assert change is not None
    assert (change.at_ns, change.before.messages, change.after.messages) == (9, 50, 60)
    assert track.moves
    track.values = limit_values(enforced(of_topic(60, relative=True)))
    assert track.change(of_topic(60, relative=True)) is None
