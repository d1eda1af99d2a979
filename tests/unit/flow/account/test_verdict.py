"""The verdict law on hand-made evidence."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.base.errors import InputError
from headgate.base.units import NS_PER_S
from headgate.flow.account.account import CELL_COUNT, Cell
from headgate.flow.account.verdict import (
    BLAME,
    GROWTH_NS_MAX,
    INFERRED_CONFIDENCE,
    Evidence,
    LimitFact,
    Verdict,
    blame_shares,
    judge,
)
from headgate.flow.limits.rate_limit import Dimension, Level

MINUTE_NS = 60 * NS_PER_S


def _cells(**parts: float) -> list[int]:
    """Nanoseconds of a minute, as parts of it by cell name."""
    cells = [0] * CELL_COUNT
    for name, part in parts.items():
        cells[Cell[name]] = round(part * MINUTE_NS)
    return cells


def _evidence(**parts: float) -> Evidence:
    return Evidence(
        window_ns=MINUTE_NS,
        cells_ns=_cells(**parts),
        backlog_start=0,
        backlog_end=6000,
        oldest_age_ns_max=30 * NS_PER_S,
        appended=9000,
        delivered=3000,
        acked=3000,
    )


def test_every_cell_blames_exactly_one() -> None:
    assert len(BLAME) == CELL_COUNT
    for cell in Cell:
        parts = blame_shares(_cells(**{cell.name: 1.0}))
        assert parts[BLAME[cell]] == 1.0
        if cell.name.endswith("_BUSY"):
            assert BLAME[cell] is Verdict.CONSUMER
    assert blame_shares([0] * CELL_COUNT)[Verdict.NONE] == 1.0


@given(st.lists(st.integers(0, 10**15), min_size=CELL_COUNT, max_size=CELL_COUNT))
def test_shares_sum_to_one(cells: list[int]) -> None:
    assert sum(blame_shares(cells).values()) == pytest.approx(1.0)


@pytest.mark.parametrize("cell", [cell for cell in Cell if BLAME[cell] is not Verdict.NONE])
def test_the_largest_share_names_the_verdict(cell: Cell) -> None:
    judgement = judge(_evidence(**{cell.name: 0.9, "CAUGHT_UP": 0.1}))
    assert judgement.verdict is BLAME[cell]
    assert judgement.second is None
    assert judgement.growth == 6000
    assert judgement.confidence == pytest.approx(0.9)


def test_what_is_not_due_is_nobodys_fault() -> None:
    """However long it waits: neither its age nor its growth is in the evidence."""
    waiting = replace(_evidence(NOT_DUE=1.0), backlog_end=0, oldest_age_ns_max=0, appended=0)
    judgement = judge(waiting)
    assert judgement.verdict is Verdict.NONE
    assert judgement.shares[Verdict.NONE] == 1.0
    assert judgement.confidence == 1.0


def test_young_and_not_growing_is_nobodys_fault() -> None:
    healthy = replace(
        _evidence(AWAITING_ACK=1.0),
        backlog_end=20,
        oldest_age_ns_max=NS_PER_S // 2,
    )
    judgement = judge(healthy)
    assert judgement.verdict is Verdict.NONE
    assert judgement.confidence == pytest.approx(0.75)
    assert judge(replace(healthy, oldest_age_ns_max=2 * NS_PER_S)).verdict is Verdict.CONSUMER
    assert judge(healthy, young_ns=NS_PER_S // 10).verdict is Verdict.CONSUMER


def test_growth_is_asked_only_where_an_age_has_not_had_time_to_tell() -> None:
    """What grows for a tenth of a long window has an old message; one burst at its end has none."""
    growing = replace(_evidence(AWAITING_ACK=1.0), oldest_age_ns_max=NS_PER_S)
    assert judge(replace(growing, window_ns=GROWTH_NS_MAX)).verdict is Verdict.CONSUMER
    assert judge(replace(growing, window_ns=GROWTH_NS_MAX + 1)).verdict is Verdict.NONE


def test_what_was_evicted_is_no_sign_of_health() -> None:
    """All that waits is young because a quota took the rest: its consumer acknowledges too late."""
    quota = replace(
        _evidence(AWAITING_ACK=0.9, CAUGHT_UP=0.1),
        backlog_end=20,
        oldest_age_ns_max=NS_PER_S // 10,
        acked=0,
        delivered=9000,
        evicted=8980,
    )
    judgement = judge(quota)
    assert (judgement.verdict, judgement.growth) == (Verdict.CONSUMER, 20)
    assert judgement.confidence == pytest.approx(0.9)
    assert judge(replace(quota, evicted=1)).verdict is Verdict.CONSUMER
    assert judge(replace(quota, evicted=0)).verdict is Verdict.NONE


def test_what_was_evicted_from_consumers_hands_counts_as_not_acknowledged() -> None:
    limited = replace(
        _evidence(SUBSCRIPTION_MESSAGES_HUNGRY=1.0),
        acked=0,
        evicted=5_000,
        limits=[LimitFact(Level.SUBSCRIPTION, 50.0, None)],
    )
    judgement = judge(limited)
    assert (judgement.verdict, judgement.bystander) == (Verdict.CONSUMER, True)
    assert judgement.second is Verdict.THROTTLED_SUBSCRIPTION
    # What never went out was no consumer's to acknowledge.
    prompt = replace(limited, acked=3_000)
    assert judge(prompt).verdict is Verdict.THROTTLED_SUBSCRIPTION


def test_a_producer_that_begins_late_in_the_window_is_nobodys_fault() -> None:
    """60 messages in flight, 0.1 s old, of 500 a second published for the last second only."""
    began = replace(
        _evidence(AWAITING_ACK=0.01, CAUGHT_UP=0.99),
        backlog_end=60,
        appended=500,
        delivered=500,
        acked=440,
        oldest_age_ns_max=NS_PER_S // 10,
    )
    assert judge(began).verdict is Verdict.NONE
    began = replace(began, window_ns=10 * NS_PER_S)
    assert judge(began).verdict is Verdict.NONE
    assert judge(replace(began, oldest_age_ns_max=NS_PER_S)).verdict is Verdict.CONSUMER


def test_a_backlog_with_nobody_to_blame_is_none_without_confidence() -> None:
    judgement = judge(_evidence(CAUGHT_UP=1.0))
    assert judgement.verdict is Verdict.NONE
    assert judgement.confidence == 0.0


def test_two_within_five_percent_are_both_named_with_low_confidence() -> None:
    judgement = judge(_evidence(TOPIC_BYTES_HUNGRY=0.51, NO_PERMITS=0.49))
    assert (judgement.verdict, judgement.second) == (Verdict.THROTTLED_TOPIC, Verdict.CONSUMER)
    assert judgement.confidence < 0.05
    assert judgement.dimension is Dimension.BYTES
    other = judge(_evidence(TOPIC_BYTES_HUNGRY=0.49, NO_PERMITS=0.51))
    assert (other.verdict, other.second) == (Verdict.CONSUMER, Verdict.THROTTLED_TOPIC)
    assert other.dimension is Dimension.BYTES
    assert judge(_evidence(TOPIC_BYTES_HUNGRY=0.6, NO_PERMITS=0.4)).second is None


@pytest.mark.parametrize(
    ("limit", "size_bytes", "expected"),
    [
        (LimitFact(Level.SUBSCRIPTION, 50.0, None), 0, True),
        (LimitFact(Level.SUBSCRIPTION, 20.0, None), 0, False),
        (LimitFact(Level.TOPIC, 20.0, None), 0, True),
    ],
)
def test_a_limiter_stands_by_where_consumers_fall_behind(
    limit: LimitFact, size_bytes: int, expected: bool
) -> None:
    filling = replace(
        _evidence(SUBSCRIPTION_MESSAGES_HUNGRY=1.0),
        delivered=3000,
        acked=1800,
        unacked_start=0,
        unacked_end=1200,
        delivered_bytes=size_bytes,
        limits=[limit],
    )
    judgement = judge(filling)
    assert judgement.bystander is expected
    assert (judgement.verdict is Verdict.CONSUMER) is expected
    assert judgement.second is (Verdict.THROTTLED_SUBSCRIPTION if expected else None)


def test_a_bystanding_limit_in_bytes_is_compared_by_mean_size() -> None:
    filling = replace(
        _evidence(BROKER_BYTES_HUNGRY=1.0),
        acked=1800,
        unacked_end=1200,
        delivered_bytes=3_000_000,
        limits=[LimitFact(Level.BROKER, None, 50_000.0)],
    )
    assert judge(filling).bystander
    tight = replace(filling, limits=[LimitFact(Level.BROKER, None, 20_000.0)])
    assert not judge(tight).bystander


def test_what_is_merely_in_flight_makes_no_bystander() -> None:
    held = replace(_evidence(SUBSCRIPTION_MESSAGES_HUNGRY=1.0), unacked_end=12)
    assert judge(held).verdict is Verdict.THROTTLED_SUBSCRIPTION


def test_the_counterfactual_asks_the_consumers_demonstrated_rate() -> None:
    held = _evidence(TOPIC_MESSAGES_HUNGRY=1.0)
    assert judge(held).would_have_grown is None
    assert judge(replace(held, demonstrated_ack_per_s=100.0)).would_have_grown is True
    assert judge(replace(held, demonstrated_ack_per_s=200.0)).would_have_grown is False
    consumer = replace(_evidence(NO_PERMITS=1.0), demonstrated_ack_per_s=100.0)
    assert judge(consumer).would_have_grown is None


def test_confidence_is_margin_times_completeness_times_agreement() -> None:
    agreeing = _cells(NO_PERMITS=1.0)
    evidence = replace(
        _evidence(NO_PERMITS=0.8, NO_CONSUMER=0.2),
        completeness=0.5,
        sub_windows_ns=[agreeing, agreeing, agreeing, _cells(NO_CONSUMER=1.0), _cells()],
    )
    assert judge(evidence).confidence == pytest.approx(0.6 * 0.5 * 0.75)


def test_parts_agree_by_their_time() -> None:
    """The last minute of a range is often some seconds of one."""
    short = [ns // 59 for ns in _cells(NO_CONSUMER=1.0)]
    evidence = replace(
        _evidence(NO_PERMITS=0.9, NO_CONSUMER=0.1),
        sub_windows_ns=[_cells(NO_PERMITS=1.0), short],
    )
    assert judge(evidence).confidence == pytest.approx(0.8 * 59 / 60)


@pytest.mark.parametrize("evidence", [_evidence(NO_PERMITS=1.0), _evidence(CAUGHT_UP=0.5)])
def test_what_is_inferred_from_counters_is_judged_alike_and_less_sure(evidence: Evidence) -> None:
    for window in (evidence, replace(evidence, oldest_age_ns_max=NS_PER_S // 10)):
        measured, inferred = judge(window), judge(replace(window, is_inferred=True))
        assert inferred == replace(
            measured, confidence=INFERRED_CONFIDENCE * measured.confidence, is_inferred=True
        )


@pytest.mark.parametrize("change", [{"window_ns": 0}, {"cells_ns": [1]}, {"completeness": 1.5}])
def test_evidence_that_cannot_be_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(InputError):
        replace(_evidence(NO_PERMITS=1.0), **change)  # type: ignore[arg-type]
