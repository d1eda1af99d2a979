"""What counters let one infer: the law by example, and what holds for all of them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.base.errors import InputError
from headgate.base.units import NS_PER_S
from headgate.flow.account.account import CELL_COUNT, LABELS, Cell
from headgate.flow.account.inferred import (
    BUSY_NS,
    GrowthCounters,
    SnapshotPair,
    SubscriptionSnapshot,
    backlog_changes,
    inferred_cells,
    oldest_age_ns,
    proportional_parts,
    scaled_cells,
)
from headgate.flow.account.verdict import Verdict, blame_shares

MINUTE = 60 * NS_PER_S
WAITING = SubscriptionSnapshot(backlog=1_000, consumers=1)
EMPTY = SubscriptionSnapshot(backlog=0, consumers=1)
SUBSCRIPTION_EVENTS = (60, 0, 0, 0, 0, 0)


def blamed(between: SnapshotPair) -> dict[Verdict, float]:
    return {v: share for v, share in blame_shares(inferred_cells(between)).items() if share}


@pytest.mark.parametrize(
    ("look", "cell"),
    [
        (EMPTY, Cell.CAUGHT_UP),
        (SubscriptionSnapshot(backlog=5, delayed=5, consumers=1), Cell.CAUGHT_UP),
        (SubscriptionSnapshot(backlog=5), Cell.NO_CONSUMER),
        (SubscriptionSnapshot(backlog=5, unacked=5, consumers=1), Cell.AWAITING_ACK),
        (SubscriptionSnapshot(backlog=5, unacked=4, consumers=1, blocked=True), Cell.UNACKED_LIMIT),
        (SubscriptionSnapshot(backlog=5, unacked=4, consumers=1), Cell.NO_PERMITS),
        (SubscriptionSnapshot(backlog=5, consumers=1, permits=0), Cell.NO_PERMITS),
        (SubscriptionSnapshot(backlog=5, consumers=1, permits=9), Cell.DISPATCHING),
    ],
)
def test_a_look_that_does_not_change_is_one_state(look: SubscriptionSnapshot, cell: Cell) -> None:
    cells = inferred_cells(SnapshotPair(MINUTE, look, look))
    assert cells[cell] == MINUTE == sum(cells)


def test_each_look_speaks_for_its_half() -> None:
    cells = inferred_cells(SnapshotPair(11, SubscriptionSnapshot(backlog=9), EMPTY))
    assert (cells[Cell.NO_CONSUMER], cells[Cell.CAUGHT_UP]) == (5, 6)


def test_a_batch_is_one_entry_and_many_messages() -> None:
    look = SubscriptionSnapshot(backlog=10, unacked=40, consumers=1)
    assert inferred_cells(SnapshotPair(MINUTE, look, look, entry_messages=4.0))[Cell.AWAITING_ACK]
    assert inferred_cells(SnapshotPair(MINUTE, look, look, entry_messages=5.0))[Cell.NO_PERMITS]


def test_events_every_second_blame_the_limiter_of_a_hungry_consumer() -> None:
    between = SnapshotPair(MINUTE, WAITING, WAITING, acked=3_000, events=SUBSCRIPTION_EVENTS)
    assert blamed(between) == {Verdict.THROTTLED_SUBSCRIPTION: 1.0}
    assert blamed(replace(between, events=(0, 0, 0, 30, 0, 0))) == {
        Verdict.THROTTLED_TOPIC: 0.5,
        Verdict.CONSUMER: 0.5,
    }
    cells = inferred_cells(replace(between, events=(0, 0, 0, 30, 0, 0)))
    assert cells[Cell.TOPIC_BYTES_HUNGRY] == MINUTE // 2


def test_limiters_that_count_the_same_wait_share_it() -> None:
    both = blamed(SnapshotPair(MINUTE, WAITING, WAITING, events=(30, 0, 30, 0, 0, 0)))
    assert both == {
        Verdict.THROTTLED_SUBSCRIPTION: 0.25,
        Verdict.THROTTLED_TOPIC: 0.25,
        Verdict.CONSUMER: 0.5,
    }


def test_a_consumer_that_holds_much_is_busy_whatever_the_events_say() -> None:
    acked = 60 * 400
    holds = 400 * BUSY_NS // NS_PER_S
    look = replace(WAITING, backlog=90_000, unacked=holds)
    between = SnapshotPair(MINUTE, look, look, acked=acked, events=SUBSCRIPTION_EVENTS)
    assert blamed(between) == {Verdict.THROTTLED_SUBSCRIPTION: 1.0}
    more = replace(look, unacked=holds + 1)
    assert blamed(replace(between, start=more, end=more)) == {Verdict.CONSUMER: 1.0}
    assert blamed(replace(between, acked=0)) == {Verdict.CONSUMER: 1.0}


def test_permits_that_are_reported_decide_alone() -> None:
    free = SubscriptionSnapshot(backlog=9_000, unacked=400, consumers=1, permits=400)
    full = replace(free, permits=399)
    between = SnapshotPair(MINUTE, free, full, events=SUBSCRIPTION_EVENTS)
    assert blamed(between) == {Verdict.THROTTLED_SUBSCRIPTION: 0.5, Verdict.CONSUMER: 0.5}
    assert blamed(replace(between, events=(0,) * 6)) == {
        Verdict.BROKER: 0.5,
        Verdict.CONSUMER: 0.5,
    }


def test_events_count_only_while_something_waits() -> None:
    between = SnapshotPair(MINUTE, EMPTY, EMPTY, events=SUBSCRIPTION_EVENTS)
    assert blamed(between) == {Verdict.NONE: 1.0}
    assert blamed(replace(between, end=WAITING)) == {
        Verdict.NONE: 0.5,
        Verdict.THROTTLED_SUBSCRIPTION: 0.5,
    }


looks = st.builds(
    SubscriptionSnapshot,
    backlog=st.integers(-3, 10**9),
    delayed=st.integers(-3, 10**9),
    unacked=st.integers(0, 10**6),
    consumers=st.integers(0, 3),
    blocked=st.booleans(),
    permits=st.none() | st.integers(-50, 10**4),
)
betweens = st.builds(
    SnapshotPair,
    elapsed_ns=st.integers(1, 10 * MINUTE),
    start=looks,
    end=looks,
    acked=st.integers(0, 10**7),
    entry_messages=st.floats(1.0, 1_000.0),
    events=st.lists(st.integers(0, 10**5), min_size=6, max_size=6),
)


@given(betweens)
def test_all_time_is_accounted_for_once(between: SnapshotPair) -> None:
    cells = inferred_cells(between)
    assert len(cells) == CELL_COUNT
    assert min(cells) >= 0
    assert sum(cells) == between.elapsed_ns


@given(betweens, st.integers(0, 5), st.integers(0, 1_000))
def test_more_events_never_mean_less_throttled_time(
    between: SnapshotPair, kind: int, more: int
) -> None:
    events = list(between.events)
    events[kind] += more
    assert _throttled_ns(replace(between, events=events)) >= _throttled_ns(between)


@given(betweens, st.integers(0, 10**6))
def test_who_holds_more_is_never_hungrier(between: SnapshotPair, more: int) -> None:
    start, end = between.start, between.end
    fuller = replace(
        between,
        start=replace(start, unacked=start.unacked + more),
        end=replace(end, unacked=end.unacked + more),
    )
    assert _hungry_ns(fuller) <= _hungry_ns(between)


@given(betweens)
def test_no_event_blames_no_limiter(between: SnapshotPair) -> None:
    assert _throttled_ns(replace(between, events=(0,) * 6)) == 0


def _throttled_ns(between: SnapshotPair) -> int:
    cells = zip(inferred_cells(between), LABELS, strict=True)
    return sum(ns for ns, labels in cells if labels.level is not None)


def _hungry_ns(between: SnapshotPair) -> int:
    cells = zip(inferred_cells(between), LABELS, strict=True)
    return sum(ns for ns, labels in cells if labels.consumer == "hungry")


@given(st.integers(0, 10**18), st.lists(st.integers(0, 10**9), max_size=22))
def test_parts_add_up(total: int, weights: list[int]) -> None:
    parts = proportional_parts(total, weights)
    assert sum(parts) == (total if any(weights) else 0)
    assert all(part >= 0 for part in parts)
    assert all(part == 0 for part, weight in zip(parts, weights, strict=True) if not weight)


def test_a_brokers_own_account_is_made_to_fit() -> None:
    assert scaled_cells((30, 0, 10), 80) == (60, 0, 20)
    assert scaled_cells((0, 0), 80) == (0, 0)


def test_what_moves_a_backlog_is_worked_out() -> None:
    plain = backlog_changes(GrowthCounters(growth=20, published=100))
    assert (plain.appended, plain.acked) == (100, 80)
    batches = backlog_changes(GrowthCounters(growth=2, published=100, entry_messages=10.0))
    assert (batches.appended, batches.acked) == (10, 8)
    stuck = backlog_changes(
        GrowthCounters(growth=12, published=100, entry_messages=10.0, was_acked=False)
    )
    assert (stuck.appended, stuck.acked, stuck.skipped) == (12, 0, 0)
    assert backlog_changes(GrowthCounters(growth=-50, published=0, was_acked=False)).skipped == 50
    assert backlog_changes(GrowthCounters(growth=50, published=10)).rewound == 40
    evicted = backlog_changes(
        GrowthCounters(growth=-80, published=20, evicted=True, acked_at_most=30)
    )
    assert (evicted.acked, evicted.evicted) == (30, 70)
    assert (
        backlog_changes(
            GrowthCounters(growth=-30, published=0, expired=30, was_acked=False)
        ).skipped
        == 0
    )


@given(
    st.builds(
        GrowthCounters,
        growth=st.integers(-(10**9), 10**9),
        published=st.integers(-5, 10**9),
        entry_messages=st.floats(0.0, 10_000.0),
        expired=st.integers(0, 10**9),
        was_acked=st.booleans(),
        evicted=st.booleans(),
        acked_at_most=st.integers(-5, 10**9),
    )
)
def test_causes_add_up_to_the_growth(counted: GrowthCounters) -> None:
    found = backlog_changes(counted)
    parts = (found.appended, found.rewound, found.acked, found.skipped, found.evicted)
    assert min(parts) >= 0
    assert found.appended <= max(0, counted.published)
    lost = found.acked + found.skipped + found.evicted + counted.expired
    assert counted.growth == found.appended + found.rewound - lost


def test_the_oldest_came_when_what_waits_began_to_come() -> None:
    assert oldest_age_ns(0, 100, MINUTE) is None
    assert oldest_age_ns(1, 1, MINUTE) == 0
    assert oldest_age_ns(51, 100, MINUTE) == MINUTE // 2
    assert oldest_age_ns(5_000, 100, MINUTE) == MINUTE
    assert oldest_age_ns(1, 0, MINUTE) == MINUTE


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(InputError, match="elapsed_ns is 0"):
        SnapshotPair(0, EMPTY, EMPTY)
    with pytest.raises(InputError, match="1 kinds of events"):
        SnapshotPair(1, EMPTY, EMPTY, events=(1,))
