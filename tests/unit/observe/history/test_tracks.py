"""The last hour of a subscription: what is kept, what is thinned out."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from headgate.engine.memory_part import CREATING_PART, KEPT_MIN
from headgate.engine.subscription import Subscription
from headgate.engine.topic import Topic
from headgate.explain.downsampling import FEW_POINTS
from headgate.observe.history import tracks as history
from headgate.observe.history.tracks import ROUND_PERIOD_S_MAX, History, Track
from tests.unit.broker.virtual import Client, VirtualBroker
from tests.unit.explain.made_points import point

GRIDS_S = ((10, 1), (65, 5), (600, 60), (3_900, 300))
"""Up to which age points stand how far apart."""


# -- what is kept -------------------------------------------------------------------------------


def busy_track(seconds: int) -> Track:
    track = Track(point(0, appended=0))
    for second in range(1, seconds + 1):
        track.add(point(second, appended=7 * second, sent=5 * second))
    return track


def test_near_the_memory_limit_the_tenants_with_the_most_have_few_points() -> None:
    """An hour of a subscription is up to 9 KB, as much again as all else of it."""
    broker = VirtualBroker()
    topics = [broker.topic("t"), broker.topic("persistent://globex/ns/t")]
    subscriptions = [broker.subscription(topic, "s") for topic in topics]
    tenants = [topic.name.tenant for topic in topics]

    def lengths(seconds: int) -> list[int]:
        for _ in range(seconds):
            for topic in topics:
                broker.publish(topic, 1)
            broker.run(1)
        tracks = [broker.observer.history.track(each) for each in subscriptions]
        return [len(track) for track in tracks if track is not None]

    assert min(lengths(30)) > FEW_POINTS
    broker.engine.durable_by_tenant[tenants[0]] += KEPT_MIN
    broker.engine.memory_part.use(CREATING_PART)
    large, small = lengths(5)
    assert large <= FEW_POINTS < small


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


def observed(count: int) -> tuple[History, Topic, list[Subscription]]:
    """A history that has seen each of many subscriptions of a topic."""
    broker, kept = VirtualBroker(), History()
    topic = broker.topic("persistent://public/default/t")
    subscriptions = [broker.subscription(topic, f"s{number}") for number in range(count)]
    for subscription in subscriptions:
        kept.observe(subscription)
    return kept, topic, subscriptions


def test_a_round_looks_for_removed_ones_among_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look at 100,000 subscriptions in one turn took 17 to 37 ms."""
    monkeypatch.setattr(history, "LOOKED_AT_MIN", 64)
    monkeypatch.setattr(history, "LOOKED_AT_PARTS", 16)
    kept, topic, subscriptions = observed(640)
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


def test_very_many_that_ended_together_are_forgotten_a_few_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing else refers to them any more: to free a fourth of 79,200 was one turn of 0.14 s."""
    monkeypatch.setattr(history, "FORGOTTEN_MAX", 64)
    kept, topic, subscriptions = observed(640)
    for subscription in subscriptions:
        topic.remove_subscription(subscription.name)
    assert kept.begin_round()
    left = [len(kept)]
    while kept.forget_some():
        left.append(len(kept))
    assert left == list(range(576, -1, -64))
    assert len(kept) == 0
    assert not kept.forget_some()


def test_what_is_replaced_in_each_round_does_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """As unloads do: with a sixteenth in a round, sixteen times as many stayed."""
    monkeypatch.setattr(history, "LOOKED_AT_MIN", 1)
    broker, kept = VirtualBroker(), History()
    topic = broker.topic("persistent://public/default/t")
    most = 0
    for _ in range(60):
        subscriptions = [broker.subscription(topic, f"s{number}") for number in range(64)]
        for subscription in subscriptions:
            kept.observe(subscription)
        most = max(most, len(kept))
        for subscription in subscriptions:
            topic.remove_subscription(subscription.name)
        kept.begin_round()
    assert most <= 5 * 64
