"""Readers that seek are expected back for a while, a bounded number of each tenant."""

from __future__ import annotations

import pytest

from headgate.base.ack_set import AckSet
from headgate.base.units import NS_PER_MS
from headgate.broker import expected_readers
from headgate.broker.expected_readers import RETURN_NS, ExpectedReaders
from headgate.engine.subscription import Subscription
from headgate.engine.types import SubscriptionType
from tests.unit.engine.harness import Rig

BOUND = 3
RETURN_MS = RETURN_NS // NS_PER_MS


@pytest.fixture(autouse=True)
def _small_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expected_readers, "EXPECTED_MAX", BOUND)


def reader(rig: Rig, name: str) -> Subscription:
    return rig.topic.add_subscription(name, AckSet(), cursor_id=None)


def test_the_one_that_waits_for_longest_gives_way_to_others_of_its_tenant() -> None:
    rig = Rig()
    readers = ExpectedReaders(rig.engine)
    waiting = [reader(rig, f"r{number}") for number in range(BOUND + 2)]
    for one in waiting:
        readers.expect(one)
    assert [one.removed for one in waiting] == [True, True, False, False, False]
    rig.advance(RETURN_MS)
    assert all(one.removed for one in waiting)
    assert not rig.topic.subscriptions
    assert not readers._until_ns


def test_near_the_memory_limit_fewer_wait() -> None:
    """Those of four tenants and what the history has yet to forget of them took a gigabyte."""
    rig = Rig()
    readers = ExpectedReaders(rig.engine)
    waiting = [reader(rig, f"r{number}") for number in range(BOUND + 1)]
    for one in waiting[:BOUND]:
        readers.expect(one)
    rig.engine.memory_part.use(1 / 3)
    readers.expect(waiting[-1])
    assert [one.removed for one in waiting] == [True, True, False, False]
    readers.expect(waiting[-1])
    assert [one.removed for one in waiting] == [True, True, True, False]
    rig.engine.memory_part.use(1.0)
    readers.expect(reader(rig, "more"))
    assert not waiting[-1].removed


def test_who_came_back_stays_and_who_seeks_again_waits_anew() -> None:
    rig = Rig()
    readers = ExpectedReaders(rig.engine)
    came, again, away = (reader(rig, name) for name in ("came", "again", "away"))
    for one in (came, again, away):
        readers.expect(one)
    rig.consumer(came, SubscriptionType.EXCLUSIVE)
    rig.advance(RETURN_MS // 2)
    readers.expect(again)
    rig.advance(RETURN_MS // 2)
    assert [one.removed for one in (came, again, away)] == [False, False, True]
    rig.advance(RETURN_MS // 2)
    assert [one.removed for one in (came, again)] == [False, True]


def test_one_that_has_left_takes_nothing_of_what_it_acknowledged() -> None:
    rig = Rig()
    rig.publish(3, messages=10)
    readers = ExpectedReaders(rig.engine)
    one = reader(rig, "r")
    readers.expect(one)
    consumer, _ = rig.consumer(one, SubscriptionType.EXCLUSIVE)
    one.ack_messages(consumer, 1, 0b1)
    one.ack_entry(consumer, 2)
    assert one.acks.blocks_bytes
    assert one.acks.partial_bytes
    one.remove_consumer(consumer)
    assert one.removed
    assert one in readers._until_ns[rig.topic.name.namespace.tenant]  # until its time has come
    assert (one.acks.blocks_bytes, one.acks.partial_bytes) == (0, 0)


def test_many_seeks_leave_one_timer() -> None:
    rig = Rig()
    readers = ExpectedReaders(rig.engine)
    one = reader(rig, "r")
    before = len(rig.engine._timers)
    for _ in range(100):
        readers.expect(one)
    assert len(rig.engine._timers) == before + 1
