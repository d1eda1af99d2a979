"""Whoever waits goes at once when its limit is lifted, however many wait (laws 1.5 and 1.8)."""

from __future__ import annotations

import pytest

from headgate.base.units import NS_PER_S
from headgate.engine.subscription import Subscription
from headgate.engine.types import SubscriptionType
from headgate.flow.account.account import Cell
from headgate.flow.limits.rate_limit import RateLimit
from tests.unit.engine.harness import Rig

TEN = RateLimit(10, None)
PERMITS = 1_000_000


def lift(rig: Rig, level: str) -> None:
    if level == "broker":
        rig.set_broker_limit(None)
    else:
        rig.topic_limit = rig.subscription_limit = None
        rig.engine.reload_limits(rig.topic)


def waiting(rig: Rig, level: str, kind: SubscriptionType) -> list[Subscription]:
    if level == "broker":
        rig.set_broker_limit(TEN)
    found = [rig.subscribe(f"s{number}") for number in range(5)]
    for number, subscription in enumerate(found):
        rig.consumer(subscription, kind, consumer_id=number, permits=PERMITS)
    rig.publish(100)
    rig.advance(350)
    assert any(subscription.throttled for subscription in found)
    return found


@pytest.mark.parametrize("kind", [SubscriptionType.EXCLUSIVE, SubscriptionType.SHARED])
@pytest.mark.parametrize("level", ["subscription", "topic", "broker"])
def test_all_that_wait_go(level: str, kind: SubscriptionType) -> None:
    rig = Rig(**({} if level == "broker" else {f"{level}_limit": TEN}))  # type: ignore[arg-type]
    found = waiting(rig, level, kind)
    lift(rig, level)
    rig.flush()
    rig.advance(1)
    assert [subscription.messages_sent for subscription in found] == [100] * 5
    assert not any(subscription.throttled for subscription in found)
    gates = rig.engine.gate
    assert (gates.demand, gates.queue.waiting, rig.topic.gate.demand) == (0, 0, 0)
    rig.publish(3)
    assert [subscription.messages_sent for subscription in found] == [103] * 5


@pytest.mark.parametrize("level", ["subscription", "topic", "broker"])
def test_a_limit_set_again_finds_its_window_full(level: str) -> None:
    """Law 1.5: nothing is forgiven by lifting it for a moment, and nobody has a claim left."""
    rig = Rig(**({} if level == "broker" else {f"{level}_limit": TEN}))  # type: ignore[arg-type]
    if level == "broker":
        rig.set_broker_limit(TEN)
    subscription = rig.subscribe()
    consumer, _ = rig.consumer(subscription, permits=15)
    rig.publish(30)
    assert subscription.messages_sent == 10
    lift(rig, level)
    rig.flush()
    rig.advance(1)
    assert subscription.messages_sent == 15
    if level == "broker":
        rig.set_broker_limit(TEN)
    else:
        setattr(rig, f"{level}_limit", TEN)
        rig.engine.reload_limits(rig.topic)
    subscription.flow(consumer, PERMITS)
    rig.flush()
    assert subscription.messages_sent == 15
    rig.advance(998)
    assert subscription.messages_sent == 15


@pytest.mark.parametrize("lifted", ["subscription", "topic"])
def test_the_account_names_the_limit_that_still_holds_at_once(lifted: str) -> None:
    """The lifted one released last, so it was named; now the broker's alone holds it."""
    slow = RateLimit(10, None, 60 * NS_PER_S)
    rig = Rig(**{f"{lifted}_limit": slow})  # type: ignore[arg-type]
    rig.set_broker_limit(RateLimit(10, None, 30 * NS_PER_S))
    subscription = rig.subscribe()
    rig.consumer(subscription, permits=PERMITS)
    rig.publish(30)
    assert subscription.account.cell is Cell[f"{lifted.upper()}_MESSAGES_HUNGRY"]
    lift(rig, lifted)
    rig.flush()
    rig.advance(1)
    assert subscription.messages_sent == 10
    assert subscription.account.cell is Cell.BROKER_MESSAGES_HUNGRY
