"""Limits as the agent knows them: what they hold, and what of that is not known."""

from __future__ import annotations

import json

import msgspec

from headgate.agent.inferred_topic import InferredTopic
from headgate.agent.limit_reports import (
    limits_report,
    publish_limits,
    subscription_limits,
    topic_limits,
)
from headgate.explain.delivery import Instant
from headgate.explain.reports import LimitsReport
from headgate.explain.states import BudgetState, LimitState
from headgate.flow.limits.precedence import EffectiveLimit
from tests.unit.agent.known import NOW, known_topic, limits_of, per_s
from tests.unit.agent.looks import TOPIC, S


def names(kind: type[msgspec.Struct]) -> set[str]:
    return {field.encode_name for field in msgspec.structs.fields(kind)}


def test_the_fields_are_the_brokers() -> None:
    report = limits_report("east", [known_topic(limits=limits_of(dispatch=per_s(60)))], 10, NOW)
    json.dumps(report)
    assert set(report) == names(LimitsReport) | {"evidence", "notSeen"}
    (limit,) = report["limits"]
    assert set(limit) == names(LimitState) | {"evidence", "holds"}
    assert set(limit["budgets"][0]) == names(BudgetState)


def test_a_limit_that_holds_a_consumer_is_told_with_its_use_and_its_time() -> None:
    topic = known_topic(limits=limits_of(dispatch=per_s(60), subscription=per_s(1_000)))
    (limit,) = topic_limits(topic, NOW.now_ns)
    assert (limit["level"], limit["subject"], limit["source"]) == ("topic", TOPIC, "topic policy")
    assert (limit["holds"], limit["waiters"]) == (True, 1)
    assert 8 <= limit["waitingS"] <= 10
    (budget,) = limit["budgets"]
    assert (budget["limit"], budget["inWindow"], budget["text"]) == (60, 60, "60 msg/s")
    (own,) = subscription_limits(topic, topic.subscriptions["billing"], NOW.now_ns)
    assert own["subject"] == f"{TOPIC} / billing"
    assert (own["holds"], own["waiters"], own["waitingS"]) == (False, 0, 0)
    assert own["budgets"][0]["inWindow"] == 60


def test_how_many_producers_a_publish_limit_holds_is_not_known() -> None:
    topic = known_topic(limits=limits_of(publish=per_s(100)))
    (limit,) = publish_limits(topic, NOW.now_ns)
    assert (limit["level"], limit["holds"]) == ("publish_topic", True)
    assert limit["waiters"] is limit["waitingS"] is None
    assert limit["budgets"][0]["inWindow"] == 100
    (idle,) = publish_limits(known_topic(limits=limits_of(publish=per_s(1_000))), NOW.now_ns)
    assert idle["holds"] is False


def test_what_is_used_is_not_known_long_after_the_last_look() -> None:
    topic = known_topic(limits=limits_of(dispatch=per_s(60), publish=per_s(100)))
    later_ns = NOW.now_ns + 200 * S
    for limit in (*topic_limits(topic, later_ns), *publish_limits(topic, later_ns)):
        assert limit["budgets"][0]["inWindow"] is None


def test_a_limit_above_the_publish_rate_has_its_present_amount() -> None:
    topic = known_topic(limits=limits_of(dispatch=per_s(20, relative=True)))
    (limit,) = topic_limits(topic, NOW.now_ns)
    (budget,) = limit["budgets"]
    assert (budget["limit"], budget["abovePublishRate"]) == (120, 20)
    assert budget["text"] == "120 msg/s (20 above the publish rate)"
    unseen = InferredTopic(TOPIC, "b1:8080")
    unseen.note_limits(limits_of(dispatch=per_s(20, relative=True)))
    (budget,) = topic_limits(unseen, NOW.now_ns)[0]["budgets"]
    assert (budget["limit"], budget["text"]) == (None, "20 msg/s above the publish rate")


def test_a_policy_that_says_unlimited_is_a_limit_without_budgets() -> None:
    unlimited = EffectiveLimit(None, "topic policy")
    (limit,) = topic_limits(known_topic(limits=limits_of(dispatch=unlimited)), NOW.now_ns)
    assert (limit["unlimited"], limit["budgets"], limit["source"]) == (True, [], "topic policy")


def test_limits_of_one_broker_are_one_limit_and_unread_ones_are_counted() -> None:
    held = (0, 0, 0, 0, 1, 0)
    limits = limits_of(broker=per_s(60))
    topics = [
        known_topic("persistent://a/b/one", limits=limits, events=held),
        known_topic("persistent://a/b/two", limits=limits, events=held),
        known_topic("persistent://a/b/unread"),
    ]
    report = limits_report("east", topics, 10, NOW)
    (limit,) = report["limits"]
    assert (limit["level"], limit["subject"], limit["broker"]) == ("broker", "", "b1:8080")
    assert limit["waiters"] == 2
    # Since when each waits is not known.
    assert limit["longestWaiting"] == [
        {"topic": f"persistent://a/b/{name}", "subscription": "billing", "waitingS": None}
        for name in ("one", "two")
    ]
    assert report["notSeen"] == [
        "the limits of 1 of the topics and partitions: the agent reads those of topics with a "
        "backlog"
    ]


def test_of_many_that_wait_the_first_are_named() -> None:
    held = (0, 0, 0, 0, 1, 0)
    topics = [
        known_topic(f"persistent://a/b/{number}", limits=limits_of(broker=per_s(60)), events=held)
        for number in range(7)
    ]
    (limit,) = limits_report("east", topics, 10, NOW)["limits"]
    assert (limit["waiters"], len(limit["longestWaiting"])) == (7, 5)


def test_those_that_hold_come_first_and_the_rest_is_counted() -> None:
    topics = [
        known_topic(
            "persistent://a/b/idle", limits=limits_of(dispatch=per_s(999)), events=(0,) * 6
        ),
        known_topic("persistent://a/b/held", limits=limits_of(dispatch=per_s(60))),
    ]
    report = limits_report("east", topics, 1, NOW)
    assert (report["limitsTotal"], report["broker"]) == (2, "east")
    assert [limit["subject"] for limit in report["limits"]] == ["persistent://a/b/held"]


def test_a_topic_that_was_deleted_has_no_limits() -> None:
    topic = known_topic(limits=limits_of(dispatch=per_s(60)))
    topic.note_gone(21 * S)
    report = limits_report("east", [topic], 10, Instant(100 * S, NOW.now_ms))
    assert (report["limitsTotal"], report["notSeen"]) == (0, [])
