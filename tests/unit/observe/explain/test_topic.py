"""The report on one topic."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from headgate.base.names import parse_topic
from headgate.broker.slices import SLICE_YIELDS
from headgate.metadata.errors import RefusalError
from headgate.observe.explain.topic import NO_SUBSCRIPTION
from headgate.observe.explain.window import part_of
from headgate.observe.states.limits import broker_limit
from tests.unit.broker.virtual import VirtualBroker
from tests.unit.observe.explain.asking import FAST, name, partitioned, topic_answer


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
        for verdict, share in window["shares"].items():
            blamed = [state["share"] for state in window["states"] if state["verdict"] == verdict]
            assert sum(blamed) == pytest.approx(share)
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
    assert answer["sentence"] == NO_SUBSCRIPTION
    assert (answer["subscriptions"], answer["limits"]) == ([], [])
    broker.registry.partitioned[name("planned")] = 4
    assert topic_answer(broker, "planned")["partitions"] == 4


def test_a_topic_that_does_not_exist() -> None:
    with pytest.raises(RefusalError, match="Topic persistent://acme/shop/none not found") as told:
        topic_answer(VirtualBroker(), "none")
    assert told.value.status == 404


def test_many_partitions_are_explained_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = VirtualBroker()
    partitioned(broker, "mail", list(range(1, 6 * SLICE_YIELDS + 1)))
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

    monkeypatch.setattr("headgate.observe.explain.window.part_of", counted)
    monkeypatch.setattr("headgate.observe.explain.delivery.broker_limit", limited)

    async def ask() -> tuple[list[int], Any]:
        work = broker.observer.explain_topic(parse_topic(name("mail")), per_partition=True)
        asking = asyncio.get_running_loop().create_task(work)
        seen = [0]
        while not asking.done():
            await asyncio.sleep(0)
            seen.append(looks[0])
            if len(seen) == 3:  # one that was looked at, and one that was not
                for index in (0, 6 * SLICE_YIELDS - 1):
                    broker.engine.unload_topic(
                        broker.engine.topics[name(f"mail-partition-{index}")], deleted=True
                    )
        return [after - before for before, after in pairwise(seen)], await asking

    steps, answer = asyncio.run(ask())
    assert max(steps) <= SLICE_YIELDS
    assert len(answer["perPartition"]) == 6 * SLICE_YIELDS - 1
    assert answer["perPartition"][0]["subscriptions"][0]["backlogMessages"] == 1
    (merged,) = answer["subscriptions"]
    assert merged["backlogMessages"] == sum(range(2, 6 * SLICE_YIELDS))
    # The broker's limit is one for all: looking at its waiters once for each partition is
    # quadratic.
    assert limits == [1]
    assert all(part["limits"] == answer["limits"] for part in answer["perPartition"])
