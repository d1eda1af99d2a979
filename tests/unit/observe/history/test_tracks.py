"""The last hour of a subscription: what is kept, what is thinned out, when a backlog began."""

from __future__ import annotations

from itertools import pairwise

import pytest

from headgate.base.units import NS_PER_S
from headgate.flow.account.account import CELL_COUNT, Cell
from headgate.flow.account.verdict import YOUNG_NS
from headgate.flow.limits.rate_limit import Level
from headgate.observe.history import tracks as history
from headgate.observe.history.tracks import (
    MARK_BITS,
    MINUTE_NS,
    RESTART_NS,
    ROUND_PERIOD_S_MAX,
    Calm,
    History,
    Point,
    Track,
    age_ns,
    begin_calm,
    changed_levels,
    look,
)
from tests.unit.broker.virtual import VirtualBroker

FAST = 1e6
S = NS_PER_S
START = 1_000 * S


def point(at_s: float, *, appended: int = 0, done: int = 0, age_s: float = 0, **more: int) -> Point:
    cells = [0] * CELL_COUNT
    cells[Cell.DISPATCHING] = round(at_s * S)
    figures = dict.fromkeys(
        ("sent", "sent_bytes", "acked", "skipped", "rewound", "expired", "evicted", "redelivered",
         "in_flight", "limits"), 0,
    )  # fmt: skip
    age = round(age_s * S)
    return Point(
        cell=Cell.DISPATCHING,
        cells_ns=tuple(cells),
        at_ns=START + round(at_s * S),
        appended=appended,
        done=done,
        age_ns=age,
        age_ns_max=age,
        **(figures | more),
    )


# -- one look -----------------------------------------------------------------------------------


def test_a_look_takes_all_figures() -> None:
    broker = VirtualBroker()
    subscription = broker.subscription(broker.topic("t", 100), limit=10)
    broker.client(subscription, FAST)
    broker.run(3)
    seen = look(subscription, broker.engine.now_ns, broker.engine.now_ms)
    assert seen.at_ns == broker.engine.now_ns
    assert seen.appended == 300
    assert seen.sent == subscription.messages_sent == 30
    assert seen.sent_bytes == 3_000
    assert seen.acked == subscription.acked_messages
    assert seen.backlog == subscription.backlog_messages == 300 - seen.done
    assert seen.in_flight == subscription.dispatcher.in_flight_messages()
    assert seen.cell is Cell.SUBSCRIPTION_MESSAGES_HUNGRY
    assert sum(seen.cells_ns) == 3 * S
    assert seen.age_ns == seen.age_ns_max == age_ns(subscription, broker.engine.now_ms) > 2 * S


def test_a_passing_look_books_nothing() -> None:
    """The limit that releases last may still be told to be the cause of the whole wait."""
    broker = VirtualBroker()
    subscription = broker.subscription(broker.topic("t"))
    broker.publish(subscription.topic, 1)
    broker.run(0.5)
    since_ns = subscription.account.since_ns
    look(subscription, broker.engine.now_ns, broker.engine.now_ms)
    assert subscription.account.since_ns == since_ns
    look(subscription, broker.engine.now_ns, broker.engine.now_ms, keep=True)
    assert subscription.account.since_ns == broker.engine.now_ns > since_ns


def test_other_limits_are_other_marks() -> None:
    broker = VirtualBroker()
    topic = broker.topic("t")
    subscription = broker.subscription(topic)
    marks = []
    for messages in (0, 50, 60, 50, 0):
        broker.limit_topic(topic, messages)
        marks.append(look(subscription, broker.engine.now_ns, broker.engine.now_ms).limits)
    assert marks[0] == marks[4] == 0
    assert marks[1] == marks[3] != marks[2]
    assert 0 not in marks[1:4]


GRIDS_S = ((10, 1), (65, 5), (600, 60), (3_900, 300))
"""Up to which age points stand how far apart."""


# -- what is kept -------------------------------------------------------------------------------


def busy_track(seconds: int) -> Track:
    track = Track(point(0, appended=0))
    for second in range(1, seconds + 1):
        track.add(point(second, appended=7 * second, sent=5 * second))
    return track


def test_points_come_back_as_they_were() -> None:
    first = point(0, appended=9, done=4, age_s=0.3, sent=6, limits=-(2**62), in_flight=2)
    track = Track(first)
    second = point(1, appended=2**50, done=1, age_s=5, redelivered=3, sent_bytes=10**15)
    track.add(second)
    assert track.since(0) == [first, second]
    assert track.since(second.at_ns) == [second]


def test_it_becomes_coarser_with_age_and_forgets_after_an_hour() -> None:
    seconds = 2 * 3_600
    track = busy_track(seconds)
    points = track.since(0)
    end_ns = points[-1].at_ns
    assert end_ns == START + seconds * S
    ages_s = [(end_ns - p.at_ns) / S for p in points]
    assert max(ages_s) <= 3_600 + 5 * 60
    assert len(points) < 60
    for older_s, younger_s in pairwise(ages_s):
        grid_s = next(grid for until, grid in GRIDS_S if older_s < until)
        assert older_s - younger_s <= grid_s
    for before, after in pairwise(points):
        assert (after.at_ns - before.at_ns) * 7 == (after.appended - before.appended) * S


def test_an_age_between_two_kept_points_is_not_lost() -> None:
    track = Track(point(0))
    for second in range(1, 200):
        track.add(point(second, appended=second, age_s=9 if second == 47 else 0))
    points = track.since(0)
    assert max(p.age_ns_max for p in points) == 9 * S
    assert max(p.age_ns for p in points) <= 9 * S


def test_nothing_is_kept_while_nothing_happens() -> None:
    broker = VirtualBroker()
    subscription = broker.subscription(broker.topic("t"))
    broker.publish(subscription.topic, 2)
    broker.run(1)
    track = broker.sweeps.history.track(subscription)
    kept = len(track.since(0))
    broker.run(600)
    assert broker.sweeps.history.track(subscription) is track
    assert len(track.since(0)) == kept
    assert track.seen_ns == broker.engine.now_ns
    # The time in which it stood still is made up when somebody asks for it.
    (made_up,) = track.since(broker.engine.now_ns - MINUTE_NS)
    assert made_up.at_ns == broker.engine.now_ns - MINUTE_NS
    assert made_up.backlog == 2
    assert made_up.age_ns == pytest.approx(541 * S, abs=S)
    assert sum(made_up.cells_ns) == made_up.at_ns - subscription.account.opened_ns


def test_after_a_rest_the_end_of_the_rest_is_kept() -> None:
    """Else the next change would seem to have taken all of it."""
    broker = VirtualBroker()
    topic = broker.topic("t")
    subscription = broker.subscription(topic)
    broker.publish(topic, 1)
    broker.run(30)
    rested_ns = broker.engine.now_ns
    broker.run(1)
    broker.publish(topic, 5)
    broker.run(1)
    track = broker.sweeps.history.track(subscription)
    last, now = track.since(rested_ns)[-2:]
    assert (last.backlog, now.backlog) == (1, 6)
    assert now.at_ns - last.at_ns <= S


def test_the_future_is_not_asked_for() -> None:
    track = Track(point(5))
    (last,) = track.since(START + 100 * S)
    assert last.at_ns == START + 5 * S


# -- the rounds ---------------------------------------------------------------------------------


def test_removed_subscriptions_are_forgotten() -> None:
    broker = VirtualBroker()
    topic = broker.topic("t")
    keep, gone = broker.subscription(topic, "keep"), broker.subscription(topic, "gone")
    broker.run(1)
    history_ = broker.sweeps.history
    assert len(history_) == 2
    topic.remove_subscription("gone")
    broker.run(1)
    assert [s for s, _ in history_.tracks()] == [keep]
    assert history_.track(gone) is None


def test_rounds_come_less_often_with_much_to_look_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "ROUND_CHANGED_MAX", 10)
    broker = VirtualBroker()
    topic = broker.topic("t")
    subscriptions = [broker.subscription(topic, f"s{i}") for i in range(25)]
    seen = History()

    def rounds(count: int) -> list[bool]:
        due = []
        for _ in range(count):
            due.append(seen.begin_round())
            if due[-1]:
                broker.publish(topic, 1)
                for subscription in subscriptions:
                    seen.observe(subscription, broker.engine.now_ns, broker.engine.now_ms)
            broker.run(1)
        return due

    assert rounds(7) == [True, True, False, False, True, False, False]
    monkeypatch.setattr(history, "ROUND_CHANGED_MAX", 1)
    due = rounds(16)
    gaps = [b - a for a, b in pairwise(i for i, is_due in enumerate(due) if is_due)]
    assert set(gaps) == {ROUND_PERIOD_S_MAX}


# -- when a backlog began -----------------------------------------------------------------------


def run(*points: Point) -> list[Calm]:
    calm = begin_calm(points[0])
    states = [calm]
    for each in points[1:]:
        calm = calm.then(each)
        states.append(calm)
    return states


def test_messages_in_flight_are_calm() -> None:
    """A busy healthy subscription always has some: as many as its rate puts there."""
    points = [point(t, appended=400 * t + 90 * (t % 2), done=400 * t) for t in range(12)]
    states = run(*points)
    assert all(calm.is_calm for calm in states)
    assert states[-1].since_ns == START


def test_a_backlog_begins_at_the_last_calm_look() -> None:
    points = [point(t, appended=100 * t, done=100 * t) for t in range(5)]
    points += [point(t, appended=100 * t, done=400, age_s=t - 4) for t in range(5, 9)]
    states = run(*points)
    assert [calm.is_calm for calm in states] == [True] * 5 + [False] * 4
    assert {calm.since_ns for calm in states[5:]} == {START + 4 * S}
    assert {calm.begin_ns for calm in states[5:]} == {START + 4 * S}


def test_an_old_message_is_a_backlog_however_few_there_are() -> None:
    states = run(point(0), point(1, appended=1), point(4, appended=1, age_s=3))
    assert [calm.is_calm for calm in states] == [True, True, False]
    assert states[2].since_ns == START + S
    assert run(point(0, appended=1, age_s=YOUNG_NS / S))[0].is_calm is False


def test_calm_returns_when_nothing_is_old_any_more() -> None:
    states = run(
        point(0),
        point(3, appended=50, age_s=2.5),
        point(4, appended=60, done=10, age_s=2.5),
        point(5, appended=70, done=69, age_s=0.1),
        point(6, appended=80, done=79, age_s=0.1),
    )
    assert [calm.is_calm for calm in states] == [True, False, False, True, True]
    assert states[4].since_ns == START + 5 * S


def test_a_young_backlog_that_no_longer_grows_is_calm_on_a_higher_level() -> None:
    """Five seconds without a new peak: the consumer takes what comes, a little later."""
    points = [point(0), point(1, appended=100, done=60, age_s=0.5)]
    points += [point(t, appended=100 * t, done=100 * t - 40, age_s=0.5) for t in range(2, 9)]
    states = run(*points)
    assert states[1].is_calm is False
    assert states[3].is_calm is False
    assert states[-1].is_calm is True
    assert states[-1].low == 40


def test_other_limits_are_another_situation() -> None:
    """What another limit did is no evidence against this one."""
    old = {"age_s": 10.0, "limits": 1}
    points = [
        point(0, appended=500, **old),  # type: ignore[arg-type]
        point(1, appended=600, **old),  # type: ignore[arg-type]
        point(2, appended=700, age_s=10, limits=2),
        point(3, appended=800, age_s=10, limits=3),
        point(3 + RESTART_NS / S, appended=900, age_s=10, limits=4),
    ]
    states = run(*points)
    begun_s = [(calm.begin_ns - START) / S for calm in states]
    # Changes that follow each other fast begin one situation, not one each.
    assert begun_s == [0, 0, 2, 2, 3 + RESTART_NS / S]
    assert {calm.since_ns for calm in states} == {START}


def test_another_level_need_not_wait_until_it_may_begin_a_situation() -> None:
    """Each level once in ten seconds, so that changes without end cannot keep it unsettled."""
    seconds = (0, 1, 2, 3, 4, 5, 3 + RESTART_NS / S)
    # The topic's limit, the broker's, the topic's again, both; then the topic's after a while.
    topic, both = 1 << MARK_BITS, 1 << MARK_BITS | 1 << 2 * MARK_BITS
    marks = (0, 0, topic, both, both + topic, 0, topic)
    points = [
        point(t, appended=int(500 + t), age_s=10.0, limits=mark)
        for t, mark in zip(seconds, marks, strict=True)
    ]
    begun_s = [(calm.begin_ns - START) / S for calm in run(*points)]
    assert begun_s == [0, 0, 2, 3, 3, 3, seconds[-1]]


def test_which_levels_changed() -> None:
    broker = VirtualBroker()
    topic = broker.topic("t")
    subscription = broker.subscription(topic)
    looks = [look(subscription, 0, 0)]
    broker.limit_topic(topic, 50)
    looks.append(look(subscription, 0, 0))
    broker.limit_broker(70)
    looks.append(look(subscription, 0, 0))
    broker.limit_topic(topic, 0)
    broker.limit_broker(80)
    looks.append(look(subscription, 0, 0))
    found = [changed_levels(before, after) for before, after in pairwise(looks)]
    assert found == [{Level.TOPIC}, {Level.BROKER}, {Level.TOPIC, Level.BROKER}]
    assert all(0 <= seen.limits < 1 << 63 for seen in looks)


def test_two_looks_close_together_tell_no_rate() -> None:
    """Else a burst between two commands of an operator would look like a rising backlog."""
    states = run(
        point(0),
        point(1, appended=1_000, done=900, age_s=0.1),
        point(1.01, appended=1_002, done=850, age_s=0.1),
    )
    assert all(calm.is_calm for calm in states)
