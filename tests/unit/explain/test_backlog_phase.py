"""When a backlog began, out of points that are given."""

from __future__ import annotations

from headgate.explain.backlog_phase import RECHANGE_NS, BacklogPhase, first_phase
from headgate.explain.points import LIMIT_HASH_BITS, Point
from headgate.flow.account.verdict import YOUNG_NS
from tests.unit.explain.made_points import START, S, point


def run(*points: Point) -> list[BacklogPhase]:
    phase = first_phase(points[0])
    states = [phase]
    for each in points[1:]:
        phase = phase.after(each)
        states.append(phase)
    return states


def test_messages_in_flight_are_no_backlog() -> None:
    """A busy healthy subscription always has some: as many as its rate puts there."""
    points = [point(t, appended=400 * t + 90 * (t % 2), done=400 * t) for t in range(12)]
    states = run(*points)
    assert not any(phase.has_backlog for phase in states)
    assert states[-1].since_ns == START


def test_a_backlog_begins_at_the_last_look_without_one() -> None:
    points = [point(t, appended=100 * t, done=100 * t) for t in range(5)]
    points += [point(t, appended=100 * t, done=400, age_s=t - 4) for t in range(5, 9)]
    states = run(*points)
    assert [phase.has_backlog for phase in states] == [False] * 5 + [True] * 4
    assert {phase.since_ns for phase in states[5:]} == {START + 4 * S}
    assert {phase.begin_ns for phase in states[5:]} == {START + 4 * S}


def test_an_old_message_is_a_backlog_however_few_there_are() -> None:
    states = run(point(0), point(1, appended=1), point(4, appended=1, age_s=3))
    assert [phase.has_backlog for phase in states] == [False, False, True]
    assert states[2].since_ns == START + S
    assert run(point(0, appended=1, age_s=YOUNG_NS / S))[0].has_backlog is True


def test_a_backlog_ends_when_nothing_is_old_any_more() -> None:
    states = run(
        point(0),
        point(3, appended=50, age_s=2.5),
        point(4, appended=60, done=10, age_s=2.5),
        point(5, appended=70, done=69, age_s=0.1),
        point(6, appended=80, done=79, age_s=0.1),
    )
    assert [phase.has_backlog for phase in states] == [False, True, True, False, False]
    assert states[4].since_ns == START + 5 * S


def test_a_young_backlog_that_no_longer_grows_ends_on_a_higher_level() -> None:
    """Five seconds without a new peak: the consumer takes what comes, a little later."""
    points = [point(0), point(1, appended=100, done=60, age_s=0.5)]
    points += [point(t, appended=100 * t, done=100 * t - 40, age_s=0.5) for t in range(2, 9)]
    states = run(*points)
    assert states[1].has_backlog is True
    assert states[3].has_backlog is True
    assert states[-1].has_backlog is False
    assert states[-1].low == 40


def test_other_limits_are_another_situation() -> None:
    """What another limit did is no evidence against this one."""
    old = {"age_s": 10.0, "limits": 1}
    points = [
        point(0, appended=500, **old),  # type: ignore[arg-type]
        point(1, appended=600, **old),  # type: ignore[arg-type]
        point(2, appended=700, age_s=10, limits=2),
        point(3, appended=800, age_s=10, limits=3),
        point(3 + RECHANGE_NS / S, appended=900, age_s=10, limits=4),
    ]
    states = run(*points)
    begun_s = [(phase.begin_ns - START) / S for phase in states]
    # Changes that follow each other fast begin one situation, not one each.
    assert begun_s == [0, 0, 2, 2, 3 + RECHANGE_NS / S]
    assert {phase.since_ns for phase in states} == {START}


def test_another_level_need_not_wait_until_it_may_begin_a_situation() -> None:
    """Each level once in ten seconds, so that changes without end cannot keep it unsettled."""
    seconds = (0, 1, 2, 3, 4, 5, 3 + RECHANGE_NS / S)
    # The topic's limit, the broker's, the topic's again, both; then the topic's after a while.
    topic, both = 1 << LIMIT_HASH_BITS, 1 << LIMIT_HASH_BITS | 1 << 2 * LIMIT_HASH_BITS
    marks = (0, 0, topic, both, both + topic, 0, topic)
    points = [
        point(t, appended=int(500 + t), age_s=10.0, limits=mark)
        for t, mark in zip(seconds, marks, strict=True)
    ]
    begun_s = [(phase.begin_ns - START) / S for phase in run(*points)]
    assert begun_s == [0, 0, 2, 3, 3, 3, seconds[-1]]


def test_two_looks_close_together_tell_no_rate() -> None:
    """Else a burst between two commands of an operator would look like a rising backlog."""
    states = run(
        point(0),
        point(1, appended=1_000, done=900, age_s=0.1),
        point(1.01, appended=1_002, done=850, age_s=0.1),
    )
    assert not any(phase.has_backlog for phase in states)
