"""What is found is open, everything else ended; nothing is lost while a target is down."""

from __future__ import annotations

from typing import Any

from headgate.base.units import NS_PER_MINUTE, NS_PER_S
from headgate.pipeline.alerts.alert import WARNING, Alert, named
from headgate.pipeline.alerts.plan import (
    ENDED_KEEP_NS,
    ENDED_MAX,
    bounded,
    delivered,
    due,
    next_state,
)
from headgate.pipeline.alerts.state import SentAlert, TargetState

NOW_NS = 1_000 * NS_PER_MINUTE
EMPTY = TargetState()


def alert(starts_ns: int | None = NOW_NS - 9 * NS_PER_MINUTE, **more: Any) -> Alert:
    texts = {"summary": "x", "description": "A backlog."}
    return Alert(named("A", WARNING, topic="t"), texts, starts_ns, NOW_NS, **more)


def planned(state: TargetState, *alerts: Alert, minutes: int = 0, ends: Any = None) -> TargetState:
    return next_state(state, alerts, ends or {}, NOW_NS + minutes * NS_PER_MINUTE)


def only(state: TargetState) -> SentAlert:
    (found,) = state.open.values()
    return found


def test_an_alert_stays_while_it_is_found_and_ends_when_it_is_not() -> None:
    first = planned(EMPTY, alert())
    assert only(first).starts_ns == NOW_NS - 9 * NS_PER_MINUTE
    assert only(first).delivered_ns is None
    second = planned(delivered(first, [only(first)], NOW_NS), alert(), minutes=1)
    assert only(second).delivered_ns == NOW_NS
    third = planned(second, minutes=2)
    assert third.open == {}
    (end,) = third.ended
    assert (end.ends_ns, end.delivered_ns) == (NOW_NS + 2 * NS_PER_MINUTE, None)


def test_the_end_is_that_of_the_tables_and_never_before_the_begin() -> None:
    first = planned(EMPTY, alert())
    key = only(first).identity
    (end,) = planned(first, minutes=2, ends={key: NOW_NS}).ended
    assert end.ends_ns == NOW_NS
    assert end.annotations == {
        "summary": "x",
        "description": "Ended at 1970-01-01 16:40 UTC. Before: A backlog.",
    }
    (end,) = planned(first, minutes=2, ends={key: 5}).ended
    assert end.ends_ns == only(first).starts_ns
    (end,) = planned(first, minutes=2, ends={key: NOW_NS * 9}).ended
    assert end.ends_ns == NOW_NS + 2 * NS_PER_MINUTE


def test_an_end_waits_until_the_target_accepts_it() -> None:
    state = planned(planned(EMPTY, alert()), minutes=1)
    state = planned(state, minutes=60)
    assert len(state.ended) == 1
    assert delivered(state, state.ended, NOW_NS).ended == ()


def test_another_backlog_of_the_same_subject_ends_the_first_one() -> None:
    first = planned(EMPTY, alert())
    again = Alert(alert().labels, {}, NOW_NS + 5 * NS_PER_MINUTE, NOW_NS + 9 * NS_PER_MINUTE)
    state = planned(delivered(first, [only(first)], NOW_NS), again, minutes=10)
    assert only(state).starts_ns == NOW_NS + 5 * NS_PER_MINUTE
    assert only(state).delivered_ns is None
    (end,) = state.ended
    assert end.ends_ns == NOW_NS + 5 * NS_PER_MINUTE


def test_a_begin_that_late_rows_move_is_the_same_alert() -> None:
    first = planned(EMPTY, alert())
    moved = planned(first, alert(NOW_NS - 3 * NS_PER_MINUTE), minutes=1)
    assert moved.ended == ()
    assert only(moved).starts_ns == only(first).starts_ns
    earlier = planned(first, alert(NOW_NS - 30 * NS_PER_MINUTE), minutes=1)
    assert only(earlier).starts_ns == NOW_NS - 30 * NS_PER_MINUTE


def test_an_alert_without_a_begin_has_that_of_its_first_run() -> None:
    first = planned(EMPTY, alert(None))
    assert only(first).starts_ns == NOW_NS
    assert only(planned(first, alert(None), minutes=9)).starts_ns == NOW_NS
    ahead = planned(EMPTY, alert(NOW_NS + NS_PER_MINUTE))
    assert only(ahead).starts_ns == NOW_NS


def test_a_forecast_that_comes_and_goes_stays() -> None:
    first = planned(EMPTY, alert(None, keeps_ns=10 * NS_PER_MINUTE))
    assert planned(first, minutes=9).ended == ()
    assert len(planned(first, minutes=10).ended) == 1
    # The clock was set back.
    assert len(planned(first, minutes=-1).ended) == 1


def test_a_webhook_gets_an_open_alert_again_after_a_while_only() -> None:
    hour_ns = 60 * NS_PER_MINUTE
    state = planned(EMPTY, alert())
    assert due(state, hour_ns, NOW_NS) == [only(state)]
    state = delivered(state, [only(state)], NOW_NS)
    assert due(state, hour_ns, NOW_NS + hour_ns - 1) == []
    assert due(state, hour_ns, NOW_NS + hour_ns) == [only(state)]
    assert due(state, 0, NOW_NS) == [only(state)]
    assert due(state, hour_ns, NOW_NS - NS_PER_S) == [only(state)]


def test_ends_that_a_target_never_accepts_are_bounded() -> None:
    (end,) = planned(planned(EMPTY, alert()), minutes=1).ended
    many = TargetState({}, (end,) * (ENDED_MAX + 3))
    state, dropped = bounded(many, NOW_NS)
    assert (len(state.ended), dropped) == (ENDED_MAX, 3)
    state, dropped = bounded(TargetState({}, (end,)), NOW_NS + ENDED_KEEP_NS)
    assert (len(state.ended), dropped) == (1, 0)
    state, dropped = bounded(TargetState({}, (end,)), NOW_NS + 2 * ENDED_KEEP_NS)
    assert (len(state.ended), dropped) == (0, 1)
