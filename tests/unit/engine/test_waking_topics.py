"""Topics whose very many subscriptions are touched a few at a time."""

from __future__ import annotations

from headgate.base.ack_set import AckSet
from headgate.base.names import parse_topic
from headgate.base.work_units import WOKEN_PER_UNIT
from headgate.engine.waking_topics import WakingTopics
from tests.unit.engine.harness import FakeLog, Rig


def test_tenants_take_turns_and_each_round_reaches_all() -> None:
    rig = Rig()
    other = rig.engine.load_topic(parse_topic("persistent://globex/ns/orders"), FakeLog(2))
    many = [rig.subscribe(f"s{number}") for number in range(10 * WOKEN_PER_UNIT)]
    few = [other.add_subscription(f"s{n}", AckSet(), cursor_id=n) for n in range(WOKEN_PER_UNIT)]
    rig.flush()
    waking = WakingTopics()
    waking.add(rig.topic)
    waking.add(other)
    assert waking.wake_some(2) == 2
    assert all(subscription.dirty for subscription in few)
    assert sum(subscription.dirty for subscription in many) == WOKEN_PER_UNIT
    waking.add(rig.topic)  # more entries while the round is under way
    rig.flush()
    assert waking.wake_some(100) == 9 + 10
    assert all(subscription.dirty for subscription in many)
    assert not waking
    assert waking.wake_some(100) == 0
