"""Timelines of the broker's subscriptions."""

from __future__ import annotations

import gc
from weakref import ref

import pytest

from headgate.base.sliced import at_once
from headgate.observe.explain import timelines as module
from headgate.observe.explain.timelines import Timelines
from headgate.observe.explain.window import part_of
from tests.unit.broker.virtual import VirtualBroker
from tests.unit.observe.explain.asking import name, topic_answer


def test_it_is_part_of_a_report_on_request() -> None:
    broker = VirtualBroker()
    topic = broker.topic(name("t"), 100)
    broker.subscription(topic)
    broker.run(150)
    (plain,) = topic_answer(broker, "t")["subscriptions"]
    assert plain["timeline"] is None
    (told,) = topic_answer(broker, "t", timelines=True)["subscriptions"]
    assert told["timeline"]["verdicts"][-2:] == ["NO_CONSUMER", "NO_CONSUMER"]
    assert told["timeline"]["backlog"][-1] == told["backlogMessages"]
    assert told["timeline"]["verdicts"][0] is None


def test_it_is_kept_for_half_a_minute_and_the_oldest_go(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = VirtualBroker()
    found = [broker.subscription(broker.topic(f"t{at}", 10)) for at in range(3)]
    broker.run(20)
    kept = Timelines()
    history = broker.observer.history
    first = at_once(kept.of([part_of(history, found[0])]))
    broker.run(20)
    assert at_once(kept.of([part_of(history, found[0])])) is first
    broker.run(20)
    assert at_once(kept.of([part_of(history, found[0])])) is not first
    monkeypatch.setattr(module, "KEPT_MAX", 2)
    for subscription in found:
        at_once(kept.of([part_of(history, subscription)]))
    assert len(kept) == 2


def test_a_subscription_that_has_ended_is_not_kept_for_its_timeline() -> None:
    """It may remember megabytes of what waits for it, which count no more."""
    broker = VirtualBroker()
    topic = broker.topic("t", 10)
    subscription = broker.subscription(topic)
    broker.run(20)
    kept = Timelines()
    at_once(kept.of([part_of(broker.observer.history, subscription)]))
    topic.remove_subscription(subscription.name)
    ended = ref(subscription)
    del subscription
    broker.run(7_300)
    gc.collect()
    assert ended() is None
    assert len(kept) == 1
