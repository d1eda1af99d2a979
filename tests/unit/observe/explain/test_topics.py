"""The answers of explain as REST gives them: the worst backlogs, or one topic."""

from __future__ import annotations

import asyncio
import json
from itertools import pairwise
from typing import Any

import pytest

from headgate.base.names import parse_topic
from headgate.broker.slices import SLICE_STEPS, SLICE_TOPICS
from headgate.flow.account.verdict import Verdict
from headgate.metadata.errors import RefusalError
from headgate.observe.explain.situation import part_of
from headgate.observe.explain.topics import NOBODY, explain_top, explain_topic
from headgate.observe.states.limits import broker_limit
from tests.unit.broker.virtual import VirtualBroker

FAST = 1e6


def name(local: str) -> str:
    return f"persistent://acme/shop/{local}"


def top(broker: VirtualBroker, count: int = 10) -> dict[str, Any]:
    answer = asyncio.run(explain_top(broker, count))  # type: ignore[arg-type]
    json.dumps(answer)
    return answer


def topic_answer(broker: VirtualBroker, local: str, **options: Any) -> dict[str, Any]:
    own: Any = broker
    answer = asyncio.run(explain_topic(own, parse_topic(name(local)), **options))
    json.dumps(answer)
    return answer


def partitioned(broker: VirtualBroker, local: str, counts: list[int]) -> None:
    """A topic of as many partitions, with a backlog of so many messages in each."""
    broker.registry.partitioned[name(local)] = len(counts)
    for i, count in enumerate(counts):
        part = broker.topic(name(f"{local}-partition-{i}"))
        broker.subscription(part, "s")
        broker.publish(part, count)


# -- the worst backlogs -------------------------------------------------------------------------


def test_the_largest_backlogs_come_first() -> None:
    broker = VirtualBroker()
    for local, count in {"a": 5, "b": 50, "c": 0, "d": 20}.items():
        topic = broker.topic(name(local))
        broker.subscription(topic, "s")
        broker.publish(topic, count)
    broker.run(4)
    answer = top(broker)
    found = [(r["topic"], r["backlogMessages"]) for r in answer["subscriptions"]]
    assert found == [(name("b"), 50), (name("d"), 20), (name("a"), 5)]
    assert (answer["subscriptionsTotal"], answer["withBacklog"]) == (4, 3)
    assert answer["broker"] == "localhost:8080"
    assert answer["at"] == "2023-11-14T22:13:24.000Z"
    few = top(broker, 1)
    assert [r["topic"] for r in few["subscriptions"]] == [name("b")]
    assert few["withBacklog"] == 3


def test_topics_of_the_system_are_left_out() -> None:
    broker = VirtualBroker()
    own = broker.topic(name("telemetry"))
    broker.subscription(own, "pipeline")
    broker.publish(own, 100)
    own.is_system = True
    answer = top(broker)
    assert (answer["subscriptions"], answer["subscriptionsTotal"]) == ([], 0)
    # Asked for by name, it is explained.
    assert topic_answer(broker, "telemetry")["subscriptions"][0]["backlogMessages"] == 100


def test_partitions_do_not_fill_the_list() -> None:
    broker = VirtualBroker()
    partitioned(broker, "wide", [10, 11, 12])
    single = broker.topic(name("single"))
    broker.subscription(single, "s")
    broker.publish(single, 20)
    broker.run(4)
    answer = top(broker)
    found = [(r["topic"], r["partitions"], r["backlogMessages"]) for r in answer["subscriptions"]]
    assert found == [(name("wide"), 3, 33), (name("single"), 0, 20)]
    assert (answer["subscriptionsTotal"], answer["withBacklog"]) == (2, 2)


def test_a_name_may_look_like_a_partitions() -> None:
    broker = VirtualBroker()
    topic = broker.topic(name("odd-partition-3"))
    broker.subscription(topic, "s")
    broker.publish(topic, 4)
    (report,) = top(broker)["subscriptions"]
    assert (report["topic"], report["partitions"]) == (name("odd-partition-3"), 0)


def test_a_long_walk_lets_others_run_and_misses_what_goes_meanwhile() -> None:
    broker = VirtualBroker()
    for i in range(3 * SLICE_TOPICS):
        topic = broker.topic(name(f"t{i}"))
        broker.subscription(topic, "s")
        broker.publish(topic, 3 * SLICE_TOPICS - i)

    async def ask() -> dict[str, Any]:
        asking = asyncio.get_running_loop().create_task(explain_top(broker, 2))  # type: ignore[arg-type]
        for _ in range(3):
            await asyncio.sleep(0)
            assert not asking.done()
        broker.engine.topics[name("t0")].remove_subscription("s")
        return await asking

    answer = asyncio.run(ask())
    assert answer["subscriptionsTotal"] == 3 * SLICE_TOPICS
    assert [r["backlogMessages"] for r in answer["subscriptions"]] == [3 * SLICE_TOPICS - 1]


def test_many_partitions_are_explained_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = VirtualBroker()
    partitioned(broker, "mail", list(range(1, 6 * SLICE_STEPS + 1)))
    broker.limit_broker(1_000)
    broker.run(4)
    looks = [0]
    limits = [0]

    def counted(*arguments: Any) -> Any:
        looks[0] += 1
        return part_of(*arguments)

    def limited(*arguments: Any) -> Any:
        limits[0] += 1
        return broker_limit(*arguments)

    monkeypatch.setattr("headgate.observe.explain.situation.part_of", counted)
    monkeypatch.setattr("headgate.observe.explain.topics.broker_limit", limited)

    async def ask() -> tuple[list[int], Any]:
        own: Any = broker
        work = explain_topic(own, parse_topic(name("mail")), per_partition=True)
        asking = asyncio.get_running_loop().create_task(work)
        seen = [0]
        while not asking.done():
            await asyncio.sleep(0)
            seen.append(looks[0])
            if len(seen) == 3:  # one that was looked at, and one that was not
                for index in (0, 6 * SLICE_STEPS - 1):
                    broker.engine.unload_topic(
                        broker.engine.topics[name(f"mail-partition-{index}")], deleted=True
                    )
        return [after - before for before, after in pairwise(seen)], await asking

    steps, answer = asyncio.run(ask())
    assert max(steps) <= SLICE_STEPS
    assert len(answer["perPartition"]) == 6 * SLICE_STEPS - 1
    assert answer["perPartition"][0]["subscriptions"][0]["backlogMessages"] == 1
    (merged,) = answer["subscriptions"]
    assert merged["backlogMessages"] == sum(range(2, 6 * SLICE_STEPS))
    # The broker's limit is one for all: looking at its waiters once for each partition is
    # quadratic.
    assert limits == [1]
    assert all(part["limits"] == answer["limits"] for part in answer["perPartition"])


# -- one subscription ---------------------------------------------------------------------------


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


# -- one topic ----------------------------------------------------------------------------------


def test_a_topic_with_its_limits_and_its_account() -> None:
    broker = VirtualBroker()
    topic = broker.topic(name("orders"), 100)
    broker.limit_topic(topic, 40)
    broker.limit_broker(10_000)
    for each in ("a", "b"):
        broker.client(broker.subscription(topic, each), FAST)
    small = broker.subscription(topic, "late")
    broker.run(20)
    answer = topic_answer(broker, "orders")
    assert (answer["topic"], answer["partitions"]) == (name("orders"), 0)
    assert [limit["level"] for limit in answer["limits"]] == ["topic", "broker"]
    assert answer["limits"][0]["waiters"] == 2
    assert answer["storageBytes"] == 100 * 2_000
    assert answer["publishing"]["producers"] == 0
    assert answer["publishing"]["lastPublish"] is None
    reports = answer["subscriptions"]
    assert reports[0]["subscription"] == "late"
    backlogs = [report["backlogMessages"] for report in reports]
    assert backlogs == sorted(backlogs, reverse=True)
    assert answer["sentence"] == f"late: {reports[0]['sentence']}"
    assert small.backlog_messages == backlogs[0]
    assert answer["perPartition"] is None


def test_the_account_adds_up_to_its_window() -> None:
    broker = VirtualBroker()
    subscription = broker.subscription(broker.topic(name("t"), 100), "s", limit=30)
    broker.client(subscription, FAST)
    broker.run(150)
    (report,) = topic_answer(broker, "t")["subscriptions"]
    for window, length_s in ((report["minute"], 60), (report["hour"], 150)):
        assert window["windowS"] == pytest.approx(length_s, abs=6)
        assert sum(state["seconds"] for state in window["states"]) == pytest.approx(
            window["windowS"]
        )
        assert sum(state["share"] for state in window["states"]) == pytest.approx(1)
        assert sum(window["shares"].values()) == pytest.approx(1)
        seconds = [state["seconds"] for state in window["states"]]
        assert seconds == sorted(seconds, reverse=True)
        growth = window["backlogEnd"] - window["backlogStart"]
        assert growth == window["appended"] - window["acked"]
        assert window["appendedPerS"] == pytest.approx(100, rel=0.02)
        assert window["deliveredPerS"] == pytest.approx(30, rel=0.03)
        assert window["ackedPerS"] == pytest.approx(window["acked"] / window["windowS"])
    assert report["limits"][0]["subject"] == f"{name('t')} / s"


def test_a_partitioned_topic_is_answered_as_one() -> None:
    broker = VirtualBroker()
    partitioned(broker, "wide", [10, 0, 5])
    broker.run(4)
    answer = topic_answer(broker, "wide")
    assert (answer["topic"], answer["partitions"]) == (name("wide"), 3)
    (report,) = answer["subscriptions"]
    assert (report["backlogMessages"], report["backlogBytes"]) == (15, 1_500)
    assert report["topic"] == name("wide")
    assert sum(state["seconds"] for state in report["minute"]["states"]) == pytest.approx(
        3 * report["minute"]["windowS"], rel=0.1
    )
    assert answer["perPartition"] is None
    split = topic_answer(broker, "wide", per_partition=True)
    parts = split.pop("perPartition")
    assert split == {key: value for key, value in answer.items() if key != "perPartition"}
    assert [part["topic"] for part in parts] == [name(f"wide-partition-{i}") for i in range(3)]
    assert [part["subscriptions"][0]["backlogMessages"] for part in parts] == [10, 0, 5]
    one = topic_answer(broker, "wide-partition-2", per_partition=True)
    assert (one["partitions"], one["perPartition"]) == (0, None)


def test_a_topic_that_nobody_reads() -> None:
    broker = VirtualBroker()
    broker.topic(name("empty"))
    answer = topic_answer(broker, "empty")
    assert (answer["sentence"], answer["subscriptions"], answer["limits"]) == (NOBODY, [], [])
    broker.registry.partitioned[name("planned")] = 4
    assert topic_answer(broker, "planned")["partitions"] == 4


def test_a_topic_that_does_not_exist() -> None:
    with pytest.raises(RefusalError, match="Topic persistent://acme/shop/none not found") as told:
        topic_answer(VirtualBroker(), "none")
    assert told.value.status == 404
