"""One topic from look to look."""

from __future__ import annotations

from dataclasses import replace

from headgate.agent.inferred_topic import InferredTopic
from headgate.base.units import NS_PER_S
from headgate.flow.account.account import Cell
from tests.unit.agent.scenario import EMPTY, TOPIC, topic_look


def _topic() -> InferredTopic:
    topic = InferredTopic(TOPIC, "b1")
    topic.note_look(topic_look(NS_PER_S, EMPTY, published=100, published_bytes=1_000))
    return topic


def _transition_s(topic: InferredTopic) -> float:
    return topic.subscriptions["s"].cells_ns[Cell.TRANSITION] / NS_PER_S


def test_rates_come_from_counters() -> None:
    topic = _topic()
    assert topic.publish_rates() == (None, None)
    topic.note_look(topic_look(3 * NS_PER_S, EMPTY, published=300, published_bytes=None))
    assert topic.publish_rates() == (100, None)
    topic.note_look(topic_look(4 * NS_PER_S, EMPTY, published=50, published_bytes=9))
    assert topic.publish_rates() == (None, None)


def test_a_look_that_comes_late_is_ignored() -> None:
    topic = _topic()
    topic.note_look(topic_look(NS_PER_S, EMPTY, published=7))
    assert topic.look is not None
    assert topic.look.published == 100
    assert topic.subscriptions["s"].looks == 1


def test_another_owner_or_counters_that_fell_are_a_loading() -> None:
    topic = _topic()
    topic.note_look(topic_look(2 * NS_PER_S, EMPTY, published=120, owner="b1"))
    assert _transition_s(topic) == 0
    topic.note_look(topic_look(3 * NS_PER_S, EMPTY, published=10))
    assert _transition_s(topic) == 1
    topic.note_look(topic_look(4 * NS_PER_S, EMPTY, published=10, owner="b2"))
    assert (_transition_s(topic), topic.owner) == (2, "b2")
    topic.note_gone(5 * NS_PER_S)
    topic.note_look(topic_look(6 * NS_PER_S, EMPTY, published=10, owner="b2"))
    assert (_transition_s(topic), topic.gone_ns) == (4, None)


def test_a_subscription_that_a_look_lacks_is_gone() -> None:
    topic = _topic()
    topic.note_look(topic_look(2 * NS_PER_S, replace(EMPTY, name="t")))
    assert list(topic.subscriptions) == ["t"]
