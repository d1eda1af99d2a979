"""Whole pages of explain, from the answers of a broker in virtual time."""

from __future__ import annotations

import asyncio
import re
from textwrap import dedent
from typing import Any

import pytest

from headgate.base.names import parse_topic
from headgate.cli.explain.page import WIDTH_MAX
from headgate.cli.explain.text import explain_text
from tests.unit.broker.virtual import VirtualBroker

FAST = 1e6


def name(local: str) -> str:
    return f"persistent://acme/shop/{local}"


def play() -> VirtualBroker:
    broker = VirtualBroker()
    orders = broker.topic(name("orders"), 120)
    broker.client(broker.subscription(orders, "billing", limit=50), FAST)
    broker.registry.partitioned[name("mail")] = 3
    for i in range(3):
        part = broker.topic(name(f"mail-partition-{i}"), 20)
        broker.limit_topic(part, 5)
        broker.client(broker.subscription(part, "sender"), FAST)
    broker.client(broker.subscription(broker.topic(name("fine"), 50), "ok"), FAST)
    broker.subscription(broker.topic(name("lost"), 10), "nobody")
    broker.topic(name("empty"))
    return broker


@pytest.fixture(scope="module")
def answers() -> dict[str, Any]:
    """After one second, and after thirty."""
    broker = play()
    found: dict[str, Any] = {}

    def ask(local: str, **options: Any) -> Any:
        return asyncio.run(broker.observer.explain_topic(parse_topic(name(local)), **options))

    broker.run(1)
    found["young"] = asyncio.run(broker.observer.explain_top(2))
    broker.run(29)
    found["top"] = asyncio.run(broker.observer.explain_top(10))
    found["first"] = asyncio.run(broker.observer.explain_top(1))
    for local in ("orders", "mail", "fine", "empty"):
        found[local] = ask(local)
    found["split"] = ask("mail", per_partition=True)
    return found


def page(answer: Any, width: int = 100) -> str:
    return explain_text(answer, width, color=False)


def expected(text: str) -> str:
    return dedent(text).lstrip("\n")


def test_the_worst_backlogs(answers: dict[str, Any]) -> None:
    assert page(answers["top"]) == expected("""
        localhost:8080, 2023-11-14 22:13:50 UTC: 4 subscriptions; the largest backlogs:

         1. acme/shop/orders  subscription billing
            backlog 2,099, growing 70/s; there for 30 s
            THROTTLED_SUBSCRIPTION (confidence 1.00): the subscription limit of 50 msg/s (topic policy) held
            this subscription for the last 29 s; the consumer had room for 100 % of the time (1,000 of 1,000
            permits are free); 120 msg/s are published, so raise it above that.

         2. acme/shop/mail (3 partitions)  subscription sender
            backlog 1,350, growing 45/s; there for 30 s
            THROTTLED_TOPIC (confidence 1.00): the topic limit of 5 msg/s (topic policy) on each of 3
            partitions held this subscription for the last 29 s; the consumer had room for 100 % of the time
            (2,550 of 3,000 permits are free); 20 msg/s are published to a partition on average, so raise it
            above that.

         3. acme/shop/lost  subscription nobody
            backlog 299, growing 10/s; there for 30 s
            NO_CONSUMER (confidence 1.00): no consumer has been connected for 29 s, 299 messages wait;
            connect one, or delete the subscription if nobody needs it.

        Keeping up, with messages in flight: acme/shop/fine subscription ok.
        """)  # noqa: E501


def test_a_young_situation_is_no_verdict_yet(answers: dict[str, Any]) -> None:
    assert page(answers["young"]) == expected("""
        localhost:8080, 2023-11-14 22:13:21 UTC: 4 subscriptions; the largest backlogs:

         1. acme/shop/orders  subscription billing
            settling: 69 messages wait, a verdict needs 3 s of history.

         2. acme/shop/mail (3 partitions)  subscription sender
            settling: 45 messages wait, a verdict needs 3 s of history.

        2 more, all smaller; --count shows more.
        """)


def test_one_topic(answers: dict[str, Any]) -> None:
    assert page(answers["orders"]) == expected("""
        acme/shop/orders, 2023-11-14 22:13:50 UTC
        0 producers; nothing published since the broker loaded it; 351 KiB stored

        subscription billing (Shared, 1 consumer)
            backlog 2,099, growing 70/s; there for 30 s
            THROTTLED_SUBSCRIPTION (confidence 1.00): the subscription limit of 50 msg/s (topic policy) held
            this subscription for the last 29 s; the consumer had room for 100 % of the time (1,000 of 1,000
            permits are free); 120 msg/s are published, so raise it above that.
            The backlog began at 22:13:20 UTC; at 22:13:20 the broker was started.

            now        throttled_subscription (messages, consumer hungry); 0 of 2,099 messages (205 KiB) are
                       with consumers; the oldest is 17 s old
            last 29 s  120/s published, 50/s acknowledged, backlog +2,030; 100% throttled_subscription
                       (messages, consumer hungry)
            held back  2,450 messages by the subscription limit, in 30 periods

        Limits in force
            subscription billing  50 msg/s  topic policy; 50 in the last 1 s; it waits
        """)  # noqa: E501


def test_a_partitioned_topic_is_one_with_its_limits_put_together(answers: dict[str, Any]) -> None:
    text = page(answers["mail"])
    assert text.startswith("acme/shop/mail (3 partitions), 2023-11-14 22:13:50 UTC\n")
    assert text.endswith(
        expected("""
        Limits in force
            topic  5 msg/s x 3  topic policy; 15 in the last 1 s; 3 waiting (acme/shop/mail-partition-0
                                sender, acme/shop/mail-partition-1 sender, acme/shop/mail-partition-2
                                sender)
        """)  # noqa: E501
    )
    parts = page(answers["split"]).removeprefix(text).split("\nacme/shop/mail-partition-")
    assert [part[0] for part in parts[1:]] == ["0", "1", "2"]
    for part in parts[1:]:
        assert "backlog 450, growing 15/s" in part
        assert "    topic  5 msg/s  topic policy; 5 in the last 1 s; 1 waiting (" in part


def test_what_keeps_up_and_what_nobody_reads(answers: dict[str, Any]) -> None:
    fine = page(answers["fine"])
    assert "\n    backlog 1, in flight\n    NONE (confidence 1.00): the consumer keeps up" in fine
    assert fine.endswith("\n\nNo dispatch limit and no publish limit is in force.\n")
    assert page(answers["empty"]).splitlines()[2] == "This topic has no subscription."


def test_no_backlog_at_all(answers: dict[str, Any]) -> None:
    fine = [r for r in answers["top"]["subscriptions"] if r["subscription"] == "ok"]
    quiet = answers["top"] | {"subscriptions": fine, "withBacklog": 1, "subscriptionsTotal": 1}
    assert page(quiet) == expected("""
        localhost:8080, 2023-11-14 22:13:50 UTC: 1 subscription, no backlog.

        Keeping up, with messages in flight: acme/shop/fine subscription ok.
        """)


def test_how_a_backlog_moves(answers: dict[str, Any]) -> None:
    report = answers["first"]["subscriptions"][0]

    def line(**changes: Any) -> str:
        old = {"backlogSinceS": 7_500.0, "knownSinceS": 3_590.0}
        changed = report | old | {"backlogMessages": 1_200, "windowS": 60.0} | changes
        text = page(answers["first"] | {"subscriptions": [changed]})
        return text.splitlines()[3].strip()

    assert line(growthMessages=90) == "backlog 1,200, growing 1.5/s; there for 2 h 5 min"
    assert line(growthMessages=2) == "backlog 1,200, steady; there for 2 h 5 min"
    assert line(growthMessages=-2, backlogSinceS=None) == "backlog 1,200, steady"
    watched = "; there for at least 2 h 5 min, of which this broker has watched 11 min"
    assert line(growthMessages=0, knownSinceS=660.0) == f"backlog 1,200, steady{watched}"
    assert line(growthMessages=0, knownSinceS=7_498.0).endswith("; there for 2 h 5 min")
    assert line(growthMessages=-600, drainsInS=120.0) == (
        "backlog 1,200, shrinking 10/s, gone in 2 min at this pace; there for 2 h 5 min"
    )


def test_a_backlog_that_shrinks_by_losses_is_not_said_to_drain(answers: dict[str, Any]) -> None:
    report = answers["first"]["subscriptions"][0]

    def line(**changes: Any) -> str:
        shrinking = {"backlogMessages": 1_200, "windowS": 60.0, "growthMessages": -600}
        changed = report | shrinking | {"backlogSinceS": None} | changes
        text = page(answers["first"] | {"subscriptions": [changed]}, WIDTH_MAX)
        return text.splitlines()[3].strip()

    assert line(drainsInS=None, evictedMessages=700) == (
        "backlog 1,200, shrinking 10/s because messages were lost (700 evicted)"
    )
    assert line(drainsInS=180.0, expiredMessages=150, skippedMessages=50) == (
        "backlog 1,200, shrinking 10/s, gone in 3 min at this pace of consumption (150"
        " expired, 50 skipped)"
    )
    earlier = {key: value for key, value in report.items() if key != "drainsInS"}
    text = page(answers["first"] | {"subscriptions": [
        earlier | {"backlogMessages": 1_200, "windowS": 60.0, "growthMessages": -600}
    ]})  # fmt: skip
    assert "gone in 2 min at this pace" in text


def test_what_changed_before_it_grew_is_one_line(answers: dict[str, Any]) -> None:
    report = answers["orders"]["subscriptions"][0]
    sentence = "The backlog began at 12:31:05 UTC; at 12:30:58 the topic was unloaded by ops"
    changed = report | {"beforeGrowth": {"sentence": sentence}}
    text = page(answers["orders"] | {"subscriptions": [changed]}, WIDTH_MAX)
    assert f"\n    {sentence}.\n" in text


def test_doubt_is_said(answers: dict[str, Any]) -> None:
    report = answers["first"]["subscriptions"][0]
    unsure = report | {"confidence": 0.2449, "confidenceLevel": "low"}
    text = page(answers["first"] | {"subscriptions": [unsure]})
    assert "\n    THROTTLED_SUBSCRIPTION (confidence 0.24, low): the subscription limit" in text


def test_the_account_tells_the_hour_and_what_else_happened(answers: dict[str, Any]) -> None:
    topic = answers["orders"]
    report = topic["subscriptions"][0]
    states = [
        {"state": "no_permits", "dimension": "", "consumer": "", "seconds": 3594, "share": 0.9983},
        {"state": "storage", "dimension": "", "consumer": "", "seconds": 6, "share": 0.0017},
    ]
    hour = report["hour"] | {"windowS": 3_600.0, "skipped": 7, "redelivered": 12, "states": states}
    text = page(topic | {"subscriptions": [report | {"hour": hour}]}, WIDTH_MAX)
    (line,) = [line for line in text.splitlines() if line.startswith("    last 60 min")]
    assert line.endswith("backlog +2,030, 7 skipped, 12 redelivered; 100% no_permits")


def test_the_first_second_of_a_subscription_has_no_figures(answers: dict[str, Any]) -> None:
    topic = answers["orders"]
    report = topic["subscriptions"][0]
    young = {name: report[name] | {"windowS": 0.4} for name in ("minute", "hour")}
    text = page(topic | {"subscriptions": [report | young]}, WIDTH_MAX)
    assert "    now " in text
    assert "last 0 s" not in text


def test_a_limit_that_moves_with_the_publish_rate(answers: dict[str, Any]) -> None:
    mail = answers["mail"]
    limits = []
    for index, limit in enumerate(mail["limits"]):
        budget = limit["budgets"][0] | {
            "limit": 25 + index,
            "abovePublishRate": 5,
            "publishRateTimes": 1,
            "text": f"{25 + index} msg/s (5 above the publish rate)",
        }
        limits.append(limit | {"relative": True, "budgets": [budget]})
    text = page(mail | {"limits": limits}, WIDTH_MAX)
    assert "topic  25 to 27 msg/s (5 above the publish rate) x 3" in text
    text = page(mail | {"limits": [limits[0]] * 2}, WIDTH_MAX)
    assert "topic  25 msg/s (5 above the publish rate) x 2" in text
    other = limits[0] | {"budgets": [limits[0]["budgets"][0] | {"publishRateTimes": 3}]}
    text = page(mail | {"limits": [limits[0], other]}, WIDTH_MAX)
    assert "topic  25 msg/s (5 above 1 to 3 x the publish rate) x 2" in text
    text = page(mail | {"limits": limits[:1]}, WIDTH_MAX)
    assert "topic  25 msg/s (5 above the publish rate)  topic policy;" in text


def test_unlimited_and_spared_are_said(answers: dict[str, Any]) -> None:
    topic = answers["orders"]
    report = topic["subscriptions"][0]
    limit = report["limits"][0] | {"unlimited": True, "budgets": []}
    held = [{"level": "topic", "dimension": "bytes", "events": 1, "amount": 2_000}]
    told = report | {"limits": [limit], "spared": True, "heldBack": held}
    text = page(topic | {"subscriptions": [told]}, WIDTH_MAX)
    assert "subscription billing  unlimited  topic policy\n" in text
    assert "spared     caught up, so no limit applies" in text
    assert "held back  2 KiB by the topic limit, in 1 period\n" in text


def test_a_limit_that_was_overdrawn(answers: dict[str, Any]) -> None:
    topic = answers["orders"]
    report = topic["subscriptions"][0]
    limit = report["limits"][0]
    budgets = [limit["budgets"][0] | {"inWindow": 1_250, "debt": 1_200, "periodS": 360.0}]
    overdrawn = report | {"limits": [limit | {"budgets": budgets, "waiters": 0}]}
    text = page(topic | {"subscriptions": [overdrawn]}, WIDTH_MAX)
    assert "; 1,250 in the last 6 min, 1,200 over it, paid by waiting; none waiting\n" in text


@pytest.mark.parametrize(
    ("publishing", "text"),
    [
        ({"messagesPerS": 9.96, "bytesPerS": 29_541.0}, "10 msg/s (28.8 KiB/s) published"),
        ({"lastPublish": "2023-11-14T22:13:40.000Z"}, "last message 10 s ago"),
        ({}, "nothing published since the broker loaded it"),
    ],
)
def test_the_publishing_side(
    answers: dict[str, Any], publishing: dict[str, Any], text: str
) -> None:
    topic = answers["orders"]
    told = topic | {"publishing": topic["publishing"] | {"producers": 1} | publishing}
    line = f"1 producer; {text}; 351 KiB stored; nothing holds publishing"
    assert page(told).splitlines()[1] == line


def test_delays_that_are_ignored_or_refused_are_said(answers: dict[str, Any]) -> None:
    answer = answers["fine"]
    assert "delays" not in page(answer)
    side = answer["publishing"] | {"delaysIgnored": 12}
    assert "delays  12 messages with a delay, delivered at once: delays are off" in page(
        answer | {"publishing": side}
    )
    assert "too long" not in page(answer)
    side = answer["publishing"] | {"delaysRefused": 1}
    assert "too long  1 message refused, with a longer delay than is allowed" in page(
        answer | {"publishing": side}
    )


def test_damage_is_reported_in_its_own_words(answers: dict[str, Any]) -> None:
    top = answers["top"]
    worst = {**top["subscriptions"][0], "damage": "there", "sentence": "it is damaged: there."}
    lost = {"topic": "persistent://acme/shop/lost", "subscription": None, "damage": "file 1"}
    part = {**lost, "subscription": "s", "damage": "file 2"}
    text = page({**top, "subscriptions": [worst], "damaged": [lost, part]})
    assert "    DAMAGED: it is damaged: there.\n" in text
    assert "THROTTLED" not in text
    assert (
        """
Damaged on the disk, and stopped until the damage is accepted:
    acme/shop/lost: file 1.
    acme/shop/lost, subscription s: file 2.
"""
        in text
    )
    topic = {**answers["orders"], "subscriptions": [], "damage": "x", "sentence": "it is gone."}
    assert "\nDAMAGED: it is gone.\n" in page(topic)


@pytest.mark.parametrize("width", [1, 40, 80, 100, 160])
def test_lines_fit_and_names_stay_whole(answers: dict[str, Any], width: int) -> None:
    long = "persistent://acme/shop/" + "long-name." * 12
    for key in ("top", "orders", "mail"):
        text = page(answers[key], width)
        assert max(map(len, text.splitlines())) <= min(max(width, 40), WIDTH_MAX)
        assert not re.search(r"[ \t]$", text, re.MULTILINE)
    assert long.removeprefix("persistent://") in page(answers["orders"] | {"topic": long}, width)


def test_colour_says_nothing_of_its_own(answers: dict[str, Any]) -> None:
    plain = page(answers["top"])
    coloured = explain_text(answers["top"], 100, color=True)
    assert re.sub(r"\x1b\[\d+m", "", coloured) == plain
    words = dict(re.findall(r"\x1b\[(\d+)m\x1b\[1m([A-Z_]+)\x1b\[0m \(", coloured))
    assert words == {"31": "THROTTLED_TOPIC", "36": "NO_CONSUMER"}


def test_what_a_quota_did_stands_below_its_sentence(answers: dict[str, Any]) -> None:
    quota = {
        "topic": "persistent://public/default/mail-partition-2",
        "sentence": "the topic is over its quota",
        "stoppedS": 90.0,
        "producersClosed": 2,
        "producersRefused": 1,
        "evictions": 3,
        "evictedMessages": 40,
        "evictedBytes": 40_000,
    }
    report = answers["mail"]
    text = page(report | {"quotas": [quota], "partitions": 3})
    assert "Its fullest partition, public/default/mail-partition-2: the topic is over" in text
    assert "It stopped producers for 90 s so far; it disconnected 2 producers and refused" in text
    assert "It evicted 40 messages (39.1 KiB) from subscriptions, in 3 evictions." in text
    quiet = quota | {"stoppedS": 0.0, "evictions": 0, "producersClosed": 0}
    text = page(report | {"quotas": [quiet], "partitions": 0})
    assert "The topic is over its quota." in text
    assert "stopped producers" not in text
    assert "It evicted" not in text
