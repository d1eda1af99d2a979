"""The law from looks to states: what holds for every input. The scenarios show it at work."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from headgate.agent.infer import (
    RELOAD_NS,
    LimiterEvidence,
    Period,
    Sample,
    cells_between,
    is_doubtful,
    plain_cell,
)
from headgate.base.units import NS_PER_S
from headgate.flow.account.account import CELL_COUNT, Cell
from headgate.flow.limits.rate_limit import Dimension, Level

WAITING = Sample(
    backlog=100, undelivered_least=80, undelivered_most=80, consumers=1, has_permits=True,
    is_hungry=True,
)  # fmt: skip
TOPIC = LimiterEvidence(Level.TOPIC, Dimension.MESSAGES, events=3, rate=95, limit=100)

AMOUNTS = st.floats(0, 1e9)
SAMPLES = st.builds(
    Sample, AMOUNTS, AMOUNTS, AMOUNTS, AMOUNTS, st.floats(1, 1e4), st.integers(0, 5),
    *[st.booleans()] * 6,
)  # fmt: skip
LIMITERS = st.lists(
    st.builds(
        LimiterEvidence,
        st.sampled_from(Level),
        st.sampled_from(Dimension),
        st.none() | st.integers(0, 10**6),
        st.none() | AMOUNTS,
        st.none() | st.floats(1, 1e9),
        st.booleans(),
        st.booleans(),
        AMOUNTS,
    ),
    max_size=6,
)


@given(st.integers(1, 10**13), SAMPLES, SAMPLES, LIMITERS, st.booleans())
def test_the_seconds_of_all_states_add_up(
    elapsed_ns: int, start: Sample, end: Sample, limiters: list[LimiterEvidence], reloaded: bool
) -> None:
    cells = cells_between(Period(elapsed_ns, start, end, limiters, was_reloaded=reloaded))
    assert len(cells) == CELL_COUNT
    assert sum(cells) == elapsed_ns
    assert min(cells) >= 0
    assert (cells[Cell.TRANSITION] > 0) == reloaded


def _seconds(*limiters: LimiterEvidence, sample: Sample = WAITING) -> dict[Cell, float]:
    cells = cells_between(Period(10 * NS_PER_S, sample, sample, limiters))
    return {Cell(place): ns / NS_PER_S for place, ns in enumerate(cells) if ns}


def test_a_limiter_at_its_limit_has_all_contested_time() -> None:
    assert _seconds(TOPIC) == {Cell.TOPIC_MESSAGES_HUNGRY: 10}
    assert _seconds(TOPIC, sample=Sample(100, 0, 80, 80, 1.0, 1, True, False)) == {
        Cell.TOPIC_MESSAGES_BUSY: 10
    }


def test_events_far_below_the_limit_prove_nothing() -> None:
    below = LimiterEvidence(Level.TOPIC, Dimension.MESSAGES, events=3, rate=50, limit=100)
    assert _seconds(below) == {Cell.DISPATCHING: 10}


def test_a_burst_that_looks_just_miss_counts_for_the_limiter() -> None:
    missed = LimiterEvidence(
        Level.TOPIC, Dimension.MESSAGES, events=3, rate=50, limit=100, burst_rate=45
    )
    assert _seconds(missed) == {Cell.TOPIC_MESSAGES_HUNGRY: 10}
    assert _seconds(replace(missed, events=0)) == {Cell.DISPATCHING: 10}
    assert _seconds(replace(missed, rate=20)) == {Cell.DISPATCHING: 10}


def test_without_the_limit_an_event_is_a_second() -> None:
    unknown = LimiterEvidence(Level.TOPIC, Dimension.BYTES, events=3)
    assert _seconds(unknown) == {Cell.TOPIC_BYTES_HUNGRY: 3, Cell.DISPATCHING: 7}


def test_events_without_a_limit_show_that_one_was_set_since() -> None:
    new = LimiterEvidence(Level.TOPIC, Dimension.BYTES, events=3, rate=1, has_no_limit=True)
    assert _seconds(new) == {Cell.TOPIC_BYTES_HUNGRY: 3, Cell.DISPATCHING: 7}
    none = LimiterEvidence(Level.TOPIC, Dimension.BYTES, events=0, rate=1, has_no_limit=True)
    assert _seconds(none) == {Cell.DISPATCHING: 10}


def test_of_two_limiters_the_one_at_its_limit_is_to_blame() -> None:
    roomy = LimiterEvidence(Level.SUBSCRIPTION, Dimension.MESSAGES, events=9, rate=95, limit=400)
    assert _seconds(roomy, TOPIC) == {Cell.TOPIC_MESSAGES_HUNGRY: 10}


def test_a_loading_takes_seconds_and_not_a_minute() -> None:
    cells = cells_between(Period(60 * NS_PER_S, WAITING, WAITING, was_reloaded=True))
    assert cells[Cell.TRANSITION] == RELOAD_NS
    assert cells[Cell.DISPATCHING] == 60 * NS_PER_S - RELOAD_NS


def test_what_a_limiter_holds_is_not_with_the_consumers() -> None:
    """Nothing tells whether an Exclusive consumer has the whole backlog, but the events do."""
    open_question = Sample(
        backlog=50, undelivered_most=50, consumers=1, has_permits=True, is_hungry=True
    )
    assert is_doubtful(open_question)
    assert plain_cell(open_question) is Cell.AWAITING_ACK
    assert plain_cell(open_question, is_throttled=True) is None
    assert not is_doubtful(WAITING)
