"""A backlog of a looked-at cluster is said to empty or to fill a quota, and not both."""

from __future__ import annotations

from typing import Any

from headgate.agent.quota_forecast import Level
from headgate.agent.quota_outlooks import with_outlooks
from headgate.flow.quota.backlog_quota import QuotaType
from tests.unit.agent.looks import TOPIC


def report(subscription: str = "billing", partitions: int = 0) -> dict[str, Any]:
    return {
        "topic": TOPIC, "subscription": subscription, "partitions": partitions,
        "drainsInS": 90.0, "breaksInS": None, "breaksQuota": None,
    }  # fmt: skip


def level(
    seconds: float | None, *, kind: QuotaType = QuotaType.SIZE, topic: str = TOPIC,
    subscription: str = "billing",
) -> Level:  # fmt: skip
    return Level(topic, kind, 100.0, 50.0, subscription, None, seconds)


def told(found: dict[str, Any]) -> tuple[Any, Any, Any]:
    return found["drainsInS"], found["breaksInS"], found["breaksQuota"]


def test_the_subscription_that_fills_a_quota_is_not_said_to_empty() -> None:
    billing, audit = with_outlooks([report(), report("audit")], [level(40.0)])
    assert told(billing) == (None, 40.0, "size")
    assert told(audit) == (90.0, None, None)


def test_a_quota_that_is_not_reached_changes_nothing() -> None:
    levels = [level(None), level(5.0, topic=f"{TOPIC}-partition-0"), level(5.0, topic="x")]
    (found,) = with_outlooks([report()], levels)
    assert told(found) == (90.0, None, None)


def test_an_age_may_be_reached_while_others_are_consumed() -> None:
    (found,) = with_outlooks([report()], [level(30.0, kind=QuotaType.TIME)])
    assert told(found) == (90.0, 30.0, "time")


def test_of_partitions_the_soonest_counts() -> None:
    levels = [
        level(seconds, topic=f"{TOPIC}-partition-{number}")
        for number, seconds in enumerate((50.0, 20.0, None, 70.0))
    ]
    (found,) = with_outlooks([report(partitions=4)], levels)
    assert told(found) == (None, 20.0, "size")


def test_a_topic_with_a_name_like_a_partitions_does_not_count() -> None:
    levels = [level(5.0, topic=f"{TOPIC}-partition-{number}") for number in ("01", "x", "0x")]
    (found,) = with_outlooks([report(partitions=4)], levels)
    assert told(found) == (90.0, None, None)
