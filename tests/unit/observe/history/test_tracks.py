"""The last hour of a subscription: what is kept, what is thinned out."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from headgate.base.units import NS_PER_MINUTE
from headgate.engine.subscription import Subscription
from headgate.observe.history import tracks as history
from headgate.observe.history.tracks import ROUND_PERIOD_S_MAX, History, Track
from tests.unit.broker.virtual import Client, VirtualBroker
from tests.unit.observe.history.points import START, S, point

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
    track = broker.observer.history.track(subscription)
    kept = len(track.since(0))
    broker.run(600)
    assert broker.observer.history.track(subscription) is track
    assert len(track.since(0)) == kept
    assert track.seen_ns == broker.engine.now_ns
    # The time in which it stood still is made up when somebody asks for it.
    (made_up,) = track.since(broker.engine.now_ns - NS_PER_MINUTE)
    assert made_up.at_ns == broker.engine.now_ns - NS_PER_MINUTE
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
    track = broker.observer.history.track(subscription)
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
    history_ = broker.observer.history
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
                    seen.observe(subscription)
            broker.run(1)
        return due

    assert rounds(7) == [True, True, False, False, True, False, False]
    monkeypatch.setattr(history, "ROUND_CHANGED_MAX", 1)
    due = rounds(16)
    gaps = [b - a for a, b in pairwise(i for i, is_due in enumerate(due) if is_due)]
    assert set(gaps) == {ROUND_PERIOD_S_MAX}


def test_a_round_records_a_part_of_very_many_healthy_subscriptions_and_all_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each at its turn; one with a backlog does not wait for the turn of healthy ones."""
    monkeypatch.setattr(history, "ROUND_CHANGED_MAX", 1_000)
    monkeypatch.setattr(history, "ROUND_RECORDED_MAX", 10)
    broker = VirtualBroker()
    healthy = [broker.topic(f"t{number}") for number in range(40)]
    subscriptions = [broker.subscription(topic, "s") for topic in healthy]
    late_topic = broker.topic("late")
    late = broker.subscription(late_topic, "s")
    for subscription in subscriptions:
        Client(subscription, rate=1_000, queue=100)
    seen, recorded = History(), [Counter[Subscription]() for _ in range(15)]
    for counts in recorded:
        for topic in healthy:
            broker.publish(topic, 1)
        broker.publish(late_topic, 1)
        for subscription in subscriptions:
            subscription.wake()
        broker.run(0.01)
        for subscription in subscriptions:
            subscription.ack_entry(
                next(iter(subscription.consumers)), subscription.topic.log.end - 1
            )
        broker.run(0.99)
        assert seen.begin_round()
        for subscription in (*subscriptions, late):
            counts[subscription] += seen.observe(subscription)
    assert all(counts[late] for counts in recorded), "it has no consumer"
    later = recorded[5:]
    assert {sum(counts[s] for counts in later) for s in subscriptions} == {2}
    assert max(counts.total() for counts in later) <= 10
    amounts = [seen.track(s).since(0)[-1].appended for s in subscriptions]  # type: ignore[union-attr]
    assert min(amounts) >= 10, "counters lose nothing"


def test_a_round_looks_for_removed_ones_among_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look at 100,000 subscriptions in one turn took 17 to 37 ms."""
    monkeypatch.setattr(history, "LOOKED_AT_MIN", 64)
    broker, kept = VirtualBroker(), History()
    topic = broker.topic("persistent://public/default/t")
    subscriptions = [broker.subscription(topic, f"s{number}") for number in range(640)]
    for subscription in subscriptions:
        kept.observe(subscription)
    for subscription in subscriptions[::2]:
        topic.remove_subscription(subscription.name)
    left = []
    for _ in range(10):
        assert kept.begin_round()
        left.append(len(kept))
    assert left == list(range(608, 288, -32))
    topic.remove_subscription(subscriptions[1].name)
    for _ in range(10):
        kept.begin_round()
    assert len(kept) == 319
