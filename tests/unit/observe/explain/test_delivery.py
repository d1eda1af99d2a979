"""The report on one subscription."""

from __future__ import annotations

import pytest

from headgate.flow.account.verdict import Verdict
from tests.unit.broker.virtual import VirtualBroker
from tests.unit.observe.explain.asking import FAST, name, top, topic_answer


def test_a_report_in_full() -> None:
    broker = VirtualBroker()
    topic = broker.topic(name("orders"), 120)
    subscription = broker.subscription(topic, "billing", limit=50)
    client = broker.client(subscription, FAST, queue=500)
    broker.run(20)
    (report,) = top(broker)["subscriptions"]
    assert report["subscription"] == "billing"
    assert (report["type"], report["consumers"]) == ("Shared", 1)
    assert report["state"] == "throttled_subscription"
    assert (report["stateDimension"], report["stateConsumer"]) == ("messages", "hungry")
    assert report["backlogMessages"] == subscription.backlog_messages
    assert report["backlogBytes"] == 100 * subscription.backlog_messages
    assert report["unackedMessages"] == subscription.dispatcher.in_flight_messages()
    assert (report["permits"], report["permitsMax"]) == (client.consumer.permits, 500)
    assert report["verdict"] == "THROTTLED_SUBSCRIPTION"
    assert (report["second"], report["bystander"]) == (None, False)
    assert report["limit"] == {
        "level": "subscription",
        "dimension": "messages",
        "text": "50 msg/s",
        "source": "topic policy",
    }
    assert set(report["shares"]) == {verdict.value for verdict in Verdict}
    assert sum(report["shares"].values()) == pytest.approx(1)
    assert report["growthMessages"] == pytest.approx(70 * report["windowS"], rel=0.1)
    assert report["confidenceLevel"] == "high"
    assert report["backlogSinceS"] == pytest.approx(20, abs=2)
    assert report["backlogSince"].startswith("2023-11-14T22:13:2")
    assert report["verdictSinceS"] == pytest.approx(20, abs=2)
    assert report["provenAckPerS"] is None
    assert report["wouldHaveGrown"] is None
    assert report["sentence"].startswith("THROTTLED_SUBSCRIPTION: the subscription limit of 50 msg")


def test_a_limit_that_was_just_removed_is_still_blamed_but_no_longer_shown() -> None:
    broker = VirtualBroker()
    topic = broker.topic(name("t"), 100)
    broker.client(broker.subscription(topic, "s"), FAST)
    broker.limit_topic(topic, 10)
    broker.run(10)
    broker.limit_topic(topic, 0)
    (report,) = top(broker)["subscriptions"]
    # Another limit is another situation, of which nothing is known yet ...
    assert (report["confidenceLevel"], report["limit"]) == ("settling", None)
    broker.limit_topic(topic, 20)
    broker.run(5)
    broker.limit_topic(topic, 0)
    (report,) = top(broker)["subscriptions"]
    # ... but changes that follow each other fast are one.
    assert report["verdict"] == "THROTTLED_TOPIC"
    assert report["limit"] is None
    assert "the topic limit held this subscription" in report["sentence"]


def test_while_it_settles_there_is_no_verdict() -> None:
    broker = VirtualBroker()
    topic = broker.topic(name("t"), 100)
    broker.client(broker.subscription(topic, "s", limit=10), FAST)
    broker.run(2)
    (report,) = top(broker)["subscriptions"]
    assert (report["verdict"], report["confidence"]) == ("SETTLING", 0.0)
    nothing = {report[key] for key in ("second", "verdictSince", "verdictSinceS", "limit")}
    assert nothing == {None}
    assert report["wouldHaveGrown"] is None
    assert report["knownSinceS"] == pytest.approx(1, abs=1)
    broker.run(3)
    (report,) = top(broker)["subscriptions"]
    assert report["verdict"] == "THROTTLED_SUBSCRIPTION"
    assert report["knownSinceS"] == pytest.approx(4, abs=1)
    assert report["knownSince"].endswith("Z")


def test_what_keeps_up_has_no_since() -> None:
    broker = VirtualBroker()
    subscription = broker.subscription(broker.topic(name("fine"), 50), "s")
    broker.client(subscription, FAST)
    broker.run(10)
    (report,) = topic_answer(broker, "fine")["subscriptions"]
    assert report["verdict"] == "NONE"
    assert (report["backlogSince"], report["backlogSinceS"]) == (None, None)
    assert report["verdictSinceS"] == pytest.approx(9, abs=2)
    assert report["limit"] is None


def test_how_sure_it_is() -> None:
    broker = VirtualBroker()
    topic = broker.topic(name("t"), 100)
    subscription = broker.subscription(topic, "s")
    broker.run(2)
    assert top(broker)["subscriptions"][0]["confidenceLevel"] == "settling"
    broker.run(8)
    assert top(broker)["subscriptions"][0]["confidenceLevel"] == "high"
    # As long without a consumer as with a slow one: two causes, and that is said.
    broker.client(subscription, 10, queue=100)
    broker.run(10)
    report = top(broker)["subscriptions"][0]
    assert report["confidenceLevel"] in ("low", "medium")
    assert report["confidence"] < 0.7
