"""What differs between two looks at a topic is a change of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headgate.agent.cluster_history import ClusterHistory
from headgate.agent.looks import ConsumerLook, SubscriptionLook
from headgate.base.units import NS_PER_MS, NS_PER_S
from headgate.explain.change_log import REPORTED_MAX, TOPIC_MAX
from headgate.explain.delivery import Instant
from headgate.flow.limits.precedence import EffectiveLimit
from headgate.flow.limits.rate_limit import RateLimit
from tests.unit.agent.known import limits_of
from tests.unit.agent.scenario import EMPTY, TOPIC, topic_look

A, B, C = (
    ConsumerLook(name, f"/10.0.0.{index}:1", "monday", 100, 0, False, 0, 1.0)
    for index, name in enumerate(("a", "b", "c"))
)
OFFSET_MS = 1_700_000_000_000


def instant(at_s: float) -> Instant:
    at_ns = round(at_s * NS_PER_S)
    return Instant(at_ns, OFFSET_MS + at_ns // NS_PER_MS)


def subscription(*consumers: ConsumerLook, **figures: Any) -> SubscriptionLook:
    return replace(EMPTY, consumers=consumers, **figures)


def seen(*looks: Any, every_s: int = 10, **figures: Any) -> ClusterHistory:
    """A history after looks, each given as the subscriptions that it shows."""
    history = ClusterHistory("c")
    for number, shown in enumerate(looks):
        history.note_look(topic_look(number * every_s * NS_PER_S, *shown, **figures))
    return history


def clauses(history: ClusterHistory, at_s: float = 60) -> list[str]:
    report = history.topic(TOPIC, instant(at_s), with_timeline=True)
    return [each["sentence"].partition(", within")[0] for each in report["changes"]["changes"]]


@pytest.mark.parametrize(
    ("before", "after", "clause"),
    [
        ((A, B), (B,), "1 of 2 consumers of s left (a)"),
        ((A,), (), "the last consumer of s left (a)"),
        ((A,), (A, B), "another consumer of s connected (b)"),
        ((A, B), (C,), "all 2 consumers of s were replaced by c, as a deployment does"),
        ((A,), (replace(A, connected_since="tuesday"),),
         "a consumer of s lost the connection and came back"),
        ((A, B), (B, A), None),
        ((A,), (replace(A, permits=3, unacked=9, sent=50),), None),
    ],
)  # fmt: skip
def test_consumers_that_came_or_left(before: Any, after: Any, clause: str | None) -> None:
    history = seen([subscription(*before)], [subscription(*after)])
    assert clauses(history) == ([] if clause is None else [clause])


@pytest.mark.parametrize(
    ("before", "after", "relieves"),
    [((A,), (A, B), True), ((A, B), (A,), False), ((A,), (B,), False), ((A, B), (B, C), False)],
)
def test_consumers_that_only_came_relieve_a_backlog(
    before: Any, after: Any, relieves: bool
) -> None:
    history = seen([subscription(*before)], [subscription(*after)])
    (change,) = history.changes.log.since(TOPIC, 0)
    assert change.relieves is relieves


def test_a_change_has_the_time_of_the_look_that_showed_it_and_how_long_that_was_not_known() -> None:
    history = seen([subscription(A)], [subscription()])
    (change,) = history.topic(TOPIC, instant(60), with_timeline=True)["changes"]["changes"]
    assert change["at"] == "2023-11-14T22:13:30.000Z"
    assert (change["kind"], change["level"], change["subscription"]) == (
        "consumers", "subscription", "s",
    )  # fmt: skip
    assert change["role"] is None
    assert change["sentence"].endswith("left (a), within 10 s before this look")
    surveyed = ClusterHistory("c")
    surveyed.note_look(topic_look(0, subscription(A), is_survey=True))
    surveyed.note_look(topic_look(60 * NS_PER_S, subscription()))
    (change,) = surveyed.topic(TOPIC, instant(60), with_timeline=True)["changes"]["changes"]
    # A survey's own figures may be 90 s old.
    assert change["sentence"].endswith("within 2 min before this look")


def test_subscriptions_and_the_broker() -> None:
    other, reader = replace(EMPTY, name="t"), replace(EMPTY, name="r", is_durable=False)
    assert clauses(seen([EMPTY], [EMPTY, other, reader])) == ["subscription t was created"]
    assert clauses(seen([EMPTY, other], [EMPTY])) == ["subscription t was deleted"]
    history = ClusterHistory("c")
    history.note_look(topic_look(0, EMPTY, published=50))
    history.note_look(topic_look(NS_PER_S, EMPTY, published=10))
    history.note_look(topic_look(2 * NS_PER_S, EMPTY, published=20, owner="b2"))
    assert clauses(history) == [
        "the topic was unloaded and loaded again",
        "another broker loaded the topic: b2 instead of b1",
    ]


def policy(messages: int | None, source: str = "topic policy") -> EffectiveLimit:
    limit = None if messages is None else RateLimit(messages, None, NS_PER_S)
    return EffectiveLimit(limit, "" if messages is None else source)


def test_limits_that_were_read_twice() -> None:
    history = seen([EMPTY], [EMPTY])
    history.note_limits(limits_of(TOPIC, dispatch=policy(500)))
    assert clauses(history) == []
    later = limits_of(TOPIC, dispatch=policy(100), publish=policy(7, "broker setting x"))
    history.note_limits(replace(later, at_ns=20 * NS_PER_S))
    found = history.topic(TOPIC, instant(60), with_timeline=True)["changes"]["changes"]
    assert [(each["kind"], each["level"]) for each in found] == [
        ("policy", "topic"), ("setting", "broker"),
    ]  # fmt: skip
    assert clauses(history) == [
        "the dispatch limit of the topic was changed from 500 msg/s to 100 msg/s (topic policy)",
        "the publish limit of the topic was set to 7 msg/s (broker setting x)",
    ]
    history.note_limits(replace(limits_of(TOPIC), at_ns=30 * NS_PER_S))
    assert clauses(history)[2] == (
        "the dispatch limit of the topic was removed (it was 100 msg/s) (topic policy)"
    )


def test_limits_of_which_not_the_same_could_be_read_are_not_compared() -> None:
    history = seen([EMPTY], [EMPTY])
    history.note_limits(limits_of(TOPIC, dispatch=policy(500)))
    unread = replace(limits_of(TOPIC), at_ns=20 * NS_PER_S, unknown=("the topic's policies",))
    history.note_limits(unread)
    assert clauses(history) == []


def growing(*, seconds: int, left_at_s: int) -> ClusterHistory:
    """A consumer keeps up until it leaves."""
    history = ClusterHistory("c")
    for second in range(seconds):
        is_there = second < left_at_s
        backlog = 0 if is_there else 100 * (second - left_at_s + 1)
        consumers = (replace(A, sent=100 * second),) if is_there else ()
        sent = 100 * min(second, left_at_s)
        look = subscription(
            *consumers, backlog=backlog, sent=sent, backlog_bytes=10 * backlog,
            last_acked_ms=min(second, left_at_s), mark_delete_moved_ms=min(second, left_at_s),
        )  # fmt: skip
        history.note_look(topic_look(second * NS_PER_S, look, published=100 * second))
    return history


def test_what_changed_before_a_backlog_grew_is_pointed_out() -> None:
    history = growing(seconds=60, left_at_s=30)
    (found,) = history.topic(TOPIC, instant(60))["subscriptions"]
    assert found["verdict"] == "NO_CONSUMER"
    growth = found["beforeGrowth"]
    assert growth["kind"] == "consumers"
    assert "the last consumer of s left (a)" in growth["sentence"]
    (top,) = history.top(5, instant(60))["subscriptions"]
    assert top["beforeGrowth"] == growth


def test_a_backlog_that_was_there_at_the_first_look_has_no_known_reason() -> None:
    history = growing(seconds=30, left_at_s=0)
    (found,) = history.topic(TOPIC, instant(30))["subscriptions"]
    assert found["verdict"] == "NO_CONSUMER"
    assert found["beforeGrowth"] is None


def test_memory_and_answers_are_bounded() -> None:
    history = seen(*([subscription(*((A,) if n % 2 else ()))] for n in range(4 * TOPIC_MAX)))
    assert len(history.changes.log) == TOPIC_MAX
    assert len(clauses(history, 40 * TOPIC_MAX)) <= min(TOPIC_MAX, REPORTED_MAX)
    report = history.topic(TOPIC, instant(40 * TOPIC_MAX), with_timeline=True)["changes"]
    # It says since when none is missing.
    assert report["completeSince"] <= report["changes"][0]["at"]


def test_a_change_that_a_late_look_showed_may_have_come_before_the_growth() -> None:
    """Where looks are a minute apart, the backlog began at the look before the one that shows that
    the consumer left."""
    history = ClusterHistory("c")
    for minute in range(5):
        is_there = minute < 3
        backlog = 0 if is_there else 6_000 * (minute - 2)
        look = subscription(
            *((replace(A, sent=6_000 * minute),) if is_there else ()), backlog=backlog,
            sent=6_000 * min(minute, 2), backlog_bytes=10 * backlog,
            last_acked_ms=min(minute, 2), mark_delete_moved_ms=min(minute, 2),
        )  # fmt: skip
        at_ns = 60 * minute * NS_PER_S
        history.note_look(topic_look(at_ns, look, published=6_000 * minute))
    (found,) = history.topic(TOPIC, instant(240))["subscriptions"]
    assert "the last consumer of s left" in found["beforeGrowth"]["sentence"]
