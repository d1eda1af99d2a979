"""What a point of the history takes from a subscription of the broker."""

from __future__ import annotations

from itertools import pairwise

from headgate.explain.points import changed_levels
from headgate.flow.account.account import Cell
from headgate.flow.limits.rate_limit import Level
from headgate.observe.history.present import point_now
from tests.unit.broker.virtual import VirtualBroker
from tests.unit.explain.made_points import S

FAST = 1e6


def test_a_look_takes_all_figures() -> None:
    broker = VirtualBroker()
    subscription = broker.subscription(broker.topic("t", 100), limit=10)
    broker.client(subscription, FAST)
    broker.run(3)
    seen = point_now(subscription)
    assert seen.at_ns == broker.engine.now_ns
    assert seen.appended == 300
    assert seen.sent == subscription.messages_sent == 30
    assert seen.sent_bytes == 3_000
    assert seen.acked == subscription.acked_messages
    assert seen.backlog == subscription.backlog_messages == 300 - seen.done
    assert seen.in_flight == subscription.dispatcher.in_flight_messages()
    assert seen.cell is Cell.SUBSCRIPTION_MESSAGES_HUNGRY
    assert sum(seen.cells_ns) == 3 * S
    assert seen.age_ns == seen.age_ns_max == subscription.oldest_age_ms() * 1_000_000 > 2 * S


def test_a_passing_look_books_nothing() -> None:
    """The limit that releases last may still be told to be the cause of the whole wait."""
    broker = VirtualBroker()
    subscription = broker.subscription(broker.topic("t"))
    broker.publish(subscription.topic, 1)
    broker.run(0.5)
    since_ns = subscription.account.since_ns
    point_now(subscription)
    assert subscription.account.since_ns == since_ns
    point_now(subscription, keep=True)
    assert subscription.account.since_ns == broker.engine.now_ns > since_ns


def test_other_limits_are_other_marks() -> None:
    broker = VirtualBroker()
    topic = broker.topic("t")
    subscription = broker.subscription(topic)
    marks = []
    for messages in (0, 50, 60, 50, 0):
        broker.limit_topic(topic, messages)
        marks.append(point_now(subscription).limits)
    assert marks[0] == marks[4] == 0
    assert marks[1] == marks[3] != marks[2]
    assert 0 not in marks[1:4]


def test_which_levels_changed() -> None:
    broker = VirtualBroker()
    topic = broker.topic("t")
    subscription = broker.subscription(topic)
    looks = [point_now(subscription)]
    broker.limit_topic(topic, 50)
    looks.append(point_now(subscription))
    broker.limit_broker(70)
    looks.append(point_now(subscription))
    broker.limit_topic(topic, 0)
    broker.limit_broker(80)
    looks.append(point_now(subscription))
    found = [changed_levels(before, after) for before, after in pairwise(looks)]
    assert found == [{Level.TOPIC}, {Level.BROKER}, {Level.TOPIC, Level.BROKER}]
    assert all(0 <= seen.limits < 1 << 63 for seen in looks)
