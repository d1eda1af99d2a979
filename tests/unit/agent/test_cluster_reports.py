"""What a cluster's history says, in the JSON of a broker's explain."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from headgate.agent.cluster_history import ClusterHistory
from headgate.agent.cluster_reports import (
    NO_EVENTS,
    NO_LIMITS,
    NO_STUCK_PROOF,
    SUBSCRIPTIONS_MAX,
)
from headgate.agent.looks import ConsumerLook, CursorLook, LimitsLook, ProofLook
from headgate.base.units import NS_PER_MS, NS_PER_S
from headgate.cli.explain.inferred import evidence_text
from headgate.explain.delivery import Instant
from headgate.explain.reports import SubscriptionAccount, SubscriptionReport, TopicReport, TopReport
from headgate.flow.limits.precedence import NO_LIMIT
from tests.unit.agent.known import known_topic, limits_of, per_s
from tests.unit.agent.scenario import EMPTY, TOPIC, topic_look

FULL = ConsumerLook("a", "/10.0.0.1:1", "monday", 0, 100, False, 100, 1.0)


def _instant(at_s: float) -> Instant:
    at_ns = round(at_s * NS_PER_S)
    return Instant(at_ns, 1_700_000_000_000 + at_ns // NS_PER_MS)


def _slow(history: ClusterHistory, *topics: str, seconds: int = 10, **figures: Any) -> None:
    """A consumer of 40/s of 100/s published, on each of these topics, in looks each second."""
    for second in range(seconds + 1):
        consumer = replace(FULL, permits=0 if second else 100, unacked=100 if second else 0)
        look = replace(
            EMPTY, backlog=60 * second, unacked=min(100, 60 * second), sent=40 * second,
            last_acked_ms=second, mark_delete_moved_ms=second, backlog_bytes=6_000 * second,
            consumers=(consumer,), **figures,
        )  # fmt: skip
        for topic in topics:
            history.note_look(
                topic_look(second * NS_PER_S, look, topic=topic, published=100 * second)
            )


def _names(kind: type[msgspec.Struct]) -> set[str]:
    return {field.encode_name for field in msgspec.structs.fields(kind)}


def test_the_fields_are_the_brokers() -> None:
    history = ClusterHistory("c")
    _slow(history, TOPIC)
    top, topic = history.top(5, _instant(10)), history.topic(TOPIC, _instant(10))
    json.dumps([top, topic])
    assert set(top) == _names(TopReport) | {"evidence", "notSeen"}
    assert set(topic) == _names(TopicReport) | {"evidence", "notSeen"}
    assert set(top["subscriptions"][0]) == _names(SubscriptionReport) | {"proof"}
    assert set(topic["subscriptions"][0]) == _names(SubscriptionAccount) | {"proof"}


def test_a_limited_subscription_leaves_nothing_open() -> None:
    """What its consumers have is counted, so ``internalStats`` would decide nothing."""
    topic = known_topic(limits=limits_of(subscription=per_s(60)), events=(1, 0, 0, 0, 0, 0))
    (subscription,) = topic.subscriptions.values()
    assert not subscription.is_doubtful
    history = ClusterHistory("c")
    history.topics[topic.name] = topic
    (found,) = history.top(5, _instant(20))["subscriptions"]
    assert (found["verdict"], found["notSeen"]) == ("THROTTLED_SUBSCRIPTION", [])


def test_a_slow_consumer_is_named() -> None:
    history = ClusterHistory("east")
    _slow(history, TOPIC)
    top = history.top(5, _instant(10))
    assert (top["broker"], top["subscriptionsTotal"], top["withBacklog"]) == ("east", 1, 1)
    (found,) = top["subscriptions"]
    assert (found["verdict"], found["state"]) == ("CONSUMER", "no_permits")
    assert (found["evidence"], found["looks"], found["lookedForS"]) == ("inferred", 11, 10)
    assert found["sentence"].startswith("CONSUMER: the consumer acknowledges only 40 msg/s")
    assert found["sentence"].endswith("(inferred from counters).")
    assert (found["backlogMessages"], found["backlogBytes"]) == (600, 60_000)
    assert (found["consumers"], found["permits"], found["permitsMax"]) == (1, 0, 100)
    assert found["notSeen"] == [NO_LIMITS]
    assert found["timeline"] is None
    topic = history.topic(TOPIC, _instant(10), with_timeline=True)
    assert topic["subscriptions"][0]["timeline"]["verdicts"][-1] == "CONSUMER"
    assert topic["publishing"]["messagesPerS"] == 100
    assert topic["subscriptions"][0]["minute"]["appendedPerS"] == 100


def test_a_figure_that_looks_do_not_tell_is_null() -> None:
    history = ClusterHistory("c")
    unknown = replace(
        EMPTY, backlog=5, backlog_bytes=None, sent=None,
        consumers=(replace(FULL, permits=None), replace(FULL, name="other", permits=5)),
    )  # fmt: skip
    for at_s in range(1, 9):
        history.note_look(topic_look(at_s * NS_PER_S, unknown, published=None, storage_bytes=None))
    topic = history.topic(TOPIC, _instant(8))
    (found,) = topic["subscriptions"]
    assert found["backlogBytes"] is found["permits"] is found["permitsMax"] is None
    for field in ("appended", "appendedPerS", "acked", "ackedPerS", "delivered", "deliveredPerS"):
        assert found["minute"][field] is found["hour"][field] is None
    assert found["provenAckPerS"] is None
    assert found["verdict"] == "CONSUMER"
    assert "msg/s" not in found["sentence"]
    assert topic["storageBytes"] is topic["publishing"]["messagesPerS"] is topic["storage"] is None


def test_a_topic_with_very_many_subscriptions_is_reported_by_the_largest() -> None:
    """All of 10,000 took ten seconds, in which no look was told and nobody else had an answer."""
    history = ClusterHistory("c")
    count = SUBSCRIPTIONS_MAX + 3
    many = tuple(
        replace(EMPTY, name=f"s{number}", backlog=number * 10 % count) for number in range(count)
    )
    history.note_look(replace(topic_look(NS_PER_S, EMPTY), subscriptions=many))
    report = history.topic(TOPIC, _instant(2))
    backlogs = [each["backlogMessages"] for each in report["subscriptions"]]
    assert backlogs == sorted(range(3, count), reverse=True)
    assert "3 more subscriptions, with smaller backlogs" in report["notSeen"]


def test_subscriptions_that_are_left_out_are_told() -> None:
    history = ClusterHistory("c")
    history.note_look(replace(topic_look(NS_PER_S, replace(EMPTY, backlog=5)), nameless=2))
    told = f"subscriptions with names of more than 512 characters: 2 of {TOPIC}"
    for report in (history.top(5, _instant(2)), history.topic(TOPIC, _instant(2))):
        assert told in report["notSeen"]
    alone = replace(topic_look(NS_PER_S, EMPTY), nameless=1, subscriptions=())
    history = ClusterHistory("c")
    history.note_look(alone)
    assert history.topic(TOPIC, _instant(2))["sentence"] == (
        "the state of its subscriptions is not known."
    )


def test_permits_that_are_no_number_are_not_known_and_never_none() -> None:
    history = ClusterHistory("c")
    consumers = (replace(FULL, permits=None), replace(FULL, name="other", permits=-3))
    for at_s in range(1, 9):
        unknown = replace(EMPTY, backlog=5, consumers=consumers if at_s > 4 else (FULL,))
        history.note_look(topic_look(at_s * NS_PER_S, unknown, published=0))
    report = history.top(5, _instant(8))
    (found,) = report["subscriptions"]
    # What the last known looks showed, with the time since then named.
    assert (found["state"], found["looks"], found["lookedForS"]) == ("no_permits", 4, 3)
    assert f"the permits of {TOPIC} s: the broker tells no number" in report["notSeen"]
    alone = ClusterHistory("c")
    alone.note_look(topic_look(NS_PER_S, replace(EMPTY, backlog=5, consumers=consumers[:1])))
    topic = alone.topic(TOPIC, _instant(2))
    assert topic["sentence"] == "the state of its subscriptions is not known."
    assert topic["subscriptions"] == []


def test_permits_matter_only_where_they_decide() -> None:
    history = ClusterHistory("c")
    garbled = (replace(FULL, permits=None),)
    for backlog, blocked in ((0, False), (5, True)):
        look = replace(EMPTY, backlog=backlog, is_blocked=blocked, consumers=garbled)
        history.note_look(topic_look((1 + backlog) * NS_PER_S, look))
        assert history.top(5, _instant(9))["notSeen"] == []
    assert history.topics[TOPIC].subscriptions["s"].looks == 2


def test_the_first_look_settles_nothing() -> None:
    history = ClusterHistory("c")
    history.note_look(topic_look(NS_PER_S, replace(EMPTY, backlog=5)))
    (found,) = history.top(1, _instant(1))["subscriptions"]
    assert (found["verdict"], found["confidence"], found["looks"]) == ("SETTLING", 0, 1)


def test_partitions_are_judged_as_one() -> None:
    history = ClusterHistory("c")
    _slow(history, f"{TOPIC}-partition-0", f"{TOPIC}-partition-1")
    (found,) = history.top(5, _instant(10))["subscriptions"]
    assert (found["topic"], found["partitions"], found["backlogMessages"]) == (TOPIC, 2, 1_200)
    assert history.topic(TOPIC, _instant(10))["partitions"] == 2
    alone = history.topic(f"{TOPIC}-partition-1", _instant(10))
    assert (alone["partitions"], alone["subscriptions"][0]["backlogMessages"]) == (0, 600)


def test_what_is_not_seen_is_named() -> None:
    history = ClusterHistory("c")
    _slow(history, TOPIC, events=None)
    history.note_limits(
        LimitsLook(TOPIC, 0, (NO_LIMIT,) * 3, {}, NO_LIMIT, ("the broker's settings",))
    )
    history.note_unreachable("b1", 10 * NS_PER_S, "it does not answer")
    top = history.top(1, _instant(100))
    assert top["notSeen"] == ["b1, for 90 s: it does not answer"]
    assert top["subscriptions"][0]["notSeen"] == [
        NO_EVENTS,
        "the broker's settings",
        "what b1 does: it does not answer",
        "the last 90 s: there was no look",
    ]
    assert top["subscriptions"][0]["confidence"] <= 0.3


def test_limits_are_null_until_they_are_read() -> None:
    history = ClusterHistory("c")
    _slow(history, TOPIC)
    topic = history.topic(TOPIC, _instant(10))
    assert topic["limits"] is topic["publishing"]["limits"] is None
    assert topic["subscriptions"][0]["limits"] is topic["publishing"]["parked"] is None
    history.note_limits(limits_of(TOPIC, dispatch=per_s(60), broker=per_s(900)))
    topic = history.topic(TOPIC, _instant(10))
    assert [limit["level"] for limit in topic["limits"]] == ["topic", "broker"]
    assert topic["publishing"]["limits"] == topic["subscriptions"][0]["limits"] == []


def test_each_partition_has_a_limit_for_itself_and_their_broker_one() -> None:
    history = ClusterHistory("c")
    parts = [f"{TOPIC}-partition-{number}" for number in range(2)]
    _slow(history, *parts)
    for part in parts:
        history.note_limits(limits_of(part, dispatch=per_s(60), broker=per_s(900)))
    limits = history.topic(TOPIC, _instant(10))["limits"]
    assert [limit["subject"] for limit in limits] == [*parts, ""]


def test_a_topic_that_no_look_showed_is_an_error() -> None:
    with pytest.raises(LookupError, match="no look has shown"):
        ClusterHistory("c").topic(TOPIC, _instant(1))


def stuck(*proofs: tuple[int, tuple[int, int]]) -> dict[str, Any]:
    """The report on a subscription of which nothing moves for 30 s, with looks at internalStats."""
    history = ClusterHistory("c")
    idle = replace(FULL, permits=1_000, unacked=0)
    for at_s in range(0, 31, 5):
        history.note_look(topic_look((1 + at_s) * NS_PER_S, replace(
            EMPTY, backlog=100 + at_s, sent=7, consumers=(idle,))))  # fmt: skip
        for proof_s, read in proofs:
            if proof_s == at_s:
                cursor = CursorLook("s", read, None, 0, False, True, False)
                at_ns = (1 + at_s) * NS_PER_S
                history.note_proof(ProofLook(TOPIC, at_ns, (8, 200), None, (cursor,)))
    (found,) = history.top(1, _instant(33))["subscriptions"]
    return dict(found)


def test_a_stuck_dispatcher_has_the_proof_of_internal_statistics() -> None:
    found = stuck((10, (8, 50)), (25, (8, 50)))
    assert found["state"] == "stuck"
    assert "unload the topic" in found["sentence"]
    assert found["proof"] == {
        "at": "2023-11-14T22:13:46.000Z", "agoS": 7.0, "readPosition": "8:50",
        "lastPosition": "8:200", "pendingReads": 0, "waitsForEntry": False, "hasPendingRead": True,
        "hasPendingReplay": False,
    }  # fmt: skip
    assert evidence_text(found).startswith(
        "inferred from 7 looks in 30 s; internalStats 7 s ago, read position 8:50 of 8:200, 0 reads"
        " under way, the dispatcher believes that it reads"
    )
    without = stuck()
    assert (without["state"], without["proof"]) == ("stuck", None)
    assert NO_STUCK_PROOF in without["notSeen"]


def test_a_read_position_that_moves_is_no_stuck_dispatcher() -> None:
    assert stuck((10, (8, 50)), (25, (8, 60)))["state"] == "dispatching"
