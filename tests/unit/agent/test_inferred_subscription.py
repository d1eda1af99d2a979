"""From looks at one subscription to an account and points."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from headgate.agent.inferred_subscription import UNKNOWN_RATES, InferredSubscription
from headgate.agent.looks import ConsumerLook, LimitsLook, SubscriptionLook
from headgate.base.units import INT64_MAX, NS_PER_S
from headgate.explain.points import changed_levels
from headgate.flow.account.account import Cell
from headgate.flow.limits.precedence import NO_LIMIT, EffectiveLimit
from headgate.flow.limits.rate_limit import Level, RateLimit
from tests.unit.agent.scenario import EMPTY, TOPIC

FIGURE = st.none() | st.integers(0, 10**12)
CONSUMERS = st.builds(
    ConsumerLook,
    st.sampled_from("ab"),
    st.just("/10.0.0.1:1"),
    st.just("monday"),
    st.none() | st.integers(-(10**6), 10**6),
    FIGURE,
    st.booleans(),
    FIGURE,
    st.none() | st.floats(0, 1e4),
)
LOOKS = st.builds(
    SubscriptionLook,
    name=st.just("s"),
    type=st.sampled_from(["", "Shared", "Exclusive", "Failover", "Key_Shared", "Odd"]),
    is_durable=st.booleans(),
    backlog=FIGURE,
    delayed=FIGURE,
    in_replay=FIGURE,
    unacked=FIGURE,
    is_blocked=st.booleans(),
    backlog_bytes=FIGURE,
    sent=FIGURE,
    sent_bytes=FIGURE,
    expired=FIGURE,
    events=st.none() | st.tuples(*[st.integers(0, 10**6)] * 6),
    draining_hashes=FIGURE,
    last_consumed_ms=FIGURE,
    last_acked_ms=FIGURE,
    mark_delete_moved_ms=FIGURE,
    oldest_age_s=st.none() | st.floats(0, 1e9),
    consumers=st.lists(CONSUMERS, max_size=3, unique_by=lambda one: one.name).map(tuple),
)
STEPS = st.lists(
    st.tuples(st.integers(1, 10**12), LOOKS, FIGURE, st.booleans()), min_size=1, max_size=8
)


@given(STEPS)
def test_whatever_looks_say_the_account_is_the_time_between_them(steps: list[Any]) -> None:
    found, at_ns, last = InferredSubscription("s"), 7, None
    for elapsed_ns, look, published, reloaded in steps:
        at_ns += elapsed_ns
        point = found.note_look(look, at_ns, published, UNKNOWN_RATES, was_reloaded=reloaded)
        assert sum(point.cells_ns) == at_ns - found.opened_ns
        assert point.backlog >= 0
        assert point.deliverable >= 0
        assert point.in_flight >= 0
        if last is not None:
            assert all(b >= a for a, b in zip(last.cells_ns, point.cells_ns, strict=True))
            for field in ("appended", "sent", "sent_bytes", "acked", "expired"):
                assert getattr(point, field) >= getattr(last, field)
        last = point
    assert found.looks == len(steps)


def _look(at_s: float, found: InferredSubscription, published: int | None, **figures: Any) -> Any:
    return found.note_look(
        replace(EMPTY, **figures), round(at_s * NS_PER_S), published, UNKNOWN_RATES
    )


def test_key_shared_waits_for_a_consumer_without_permits() -> None:
    slow = ConsumerLook("slow", "/10.0.0.1:1", "monday", 0, 100, False, 100, 1.0)
    fast = ConsumerLook("fast", "/10.0.0.1:2", "monday", 100, 0, False, 100, 1.0)
    waits = replace(
        EMPTY, type="Key_Shared", backlog=500, in_replay=400, unacked=100, consumers=(slow, fast)
    )
    changes: tuple[tuple[dict[str, Any], Cell], ...] = (
        ({}, Cell.KEY_BLOCKED),
        ({"in_replay": 0}, Cell.DISPATCHING),
        ({"consumers": (fast,)}, Cell.DISPATCHING),
    )
    for change, cell in changes:
        subscription = InferredSubscription("s")
        for second in (1, 2):
            subscription.note_look(replace(waits, **change), second * NS_PER_S, 0, UNKNOWN_RATES)
        assert subscription.track is not None
        assert subscription.track.phase.last.cell is cell, change


PULSAR_BURSTS = (
    (1.07, 60, 2), (0.93, 60, 2), (1.22, 60, 2), (1.23, 60, 2), (1.25, 120, 4), (1.13, 0, 1),
    (0.66, 60, 1), (1.27, 60, 3), (1.32, 120, 4), (1.32, 60, 2), (0.62, 60, 2), (0.99, 60, 2),
)  # fmt: skip
"""Looks at a topic of Pulsar 4.0.8 with a limit of 60 messages a second: seconds since the look
before, messages sent, throttled events."""


def test_a_limit_that_sends_in_bursts_is_seen_at_every_look() -> None:
    fast = ConsumerLook("fast", "/10.0.0.1:2", "monday", 1_000, 0, False, 0, 1.0)
    subscription = InferredSubscription("s")
    limits = (NO_LIMIT, EffectiveLimit(RateLimit(60, None), "topic policy"), NO_LIMIT)
    subscription.note_limits(LimitsLook(TOPIC, 0, limits, {}, NO_LIMIT, ()))
    seen = replace(EMPTY, backlog=1_000, consumers=(fast,))
    at_ns, sent, events = NS_PER_S, 0, 0
    subscription.note_look(seen, at_ns, 0, UNKNOWN_RATES)
    for elapsed_s, amount, count in PULSAR_BURSTS:
        at_ns += round(elapsed_s * NS_PER_S)
        sent, events = sent + amount, events + count
        look = replace(seen, sent=sent, events=(0, 0, events, 0, 0, 0))
        rate = subscription.rates[0]
        subscription.note_look(look, at_ns, sent, (rate, None))
    held_ns = subscription.cells_ns[Cell.TOPIC_MESSAGES_HUNGRY]
    assert held_ns >= 0.8 * (at_ns - NS_PER_S)


def test_amounts_come_from_counters() -> None:
    found = InferredSubscription("s")
    _look(1, found, 100, backlog=10, sent=90)
    point = _look(2, found, 150, backlog=20, sent=130, last_acked_ms=5)
    assert (point.appended, point.backlog, point.sent, point.acked) == (60, 20, 40, 40)
    assert found.rates == (40, 0)
    # A figure that is not known adds nothing, and is no fall to zero.
    point = _look(3, found, None, backlog=20, sent=None)
    assert (point.appended, point.backlog, point.sent) == (60, 20, 40)
    assert found.rates == (None, 0)


def test_a_batch_is_its_messages() -> None:
    batches = ConsumerLook("a", "", "", 100, 0, False, 1_000, 50.0)
    found = InferredSubscription("s")
    point = _look(1, found, 1_000, backlog=18, type="Exclusive", consumers=(batches,))
    assert point.backlog == 900


def test_figures_of_a_cluster_that_add_up_to_more_than_64_bits_are_the_largest_number() -> None:
    batches = ConsumerLook("a", "", "", 100, 0, False, 1_000, 2.0**31)
    found = InferredSubscription("s")
    for at_s in (1, 2, 3):
        point = _look(
            at_s, found, at_s << 60, backlog=1 << 50, sent=at_s << 62, type="Exclusive",
            oldest_age_s=1e30, consumers=(batches,),
        )  # fmt: skip
    assert point.age_ns == point.appended == INT64_MAX
    assert found.track is not None


def test_reading_limits_for_the_first_time_is_no_change_of_them() -> None:
    def limits(messages: int) -> LimitsLook:
        limit = EffectiveLimit(RateLimit(messages, None), "topic policy")
        return LimitsLook(TOPIC, 0, (NO_LIMIT, limit, NO_LIMIT), {}, NO_LIMIT, ())

    found = InferredSubscription("s")
    points = [_look(1, found, 0)]
    for at_s, messages in ((2, 80), (3, 80), (4, 40), (5, 80)):
        found.note_limits(limits(messages))
        points.append(_look(at_s, found, 0))
    changes = [changed_levels(a, b) for a, b in pairwise(points)]
    assert changes == [set(), set(), {Level.TOPIC}, {Level.TOPIC}]


def test_a_policy_of_the_subscription_comes_first() -> None:
    own = EffectiveLimit(RateLimit(9, None), "subscription policy")
    found = InferredSubscription("s")
    found.note_limits(LimitsLook(TOPIC, 0, (NO_LIMIT,) * 3, {"s": own}, NO_LIMIT, ()))
    assert found.limits == (own, NO_LIMIT, NO_LIMIT)
