"""The report on the largest backlogs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from headgate.base.largest import Largest
from headgate.base.work_units import PIECE_UNITS
from headgate.broker.slices import SLICE_TOPICS
from headgate.observe.explain.top import BACKLOG_UNITS
from tests.unit.broker.virtual import VirtualBroker
from tests.unit.observe.explain.asking import name, partitioned, top, topic_answer


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
        asking = asyncio.get_running_loop().create_task(broker.observer.explain_top(2))
        for _ in range(2):
            await asyncio.sleep(0)
            assert not asking.done()
        broker.engine.topics[name("t0")].remove_subscription("s")
        return await asking

    answer = asyncio.run(ask())
    assert answer["subscriptionsTotal"] == 3 * SLICE_TOPICS
    assert [r["backlogMessages"] for r in answer["subscriptions"]] == [3 * SLICE_TOPICS - 1]


def test_very_many_backlogs_are_compared_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """No turn ranks more backlogs than a piece has units for."""
    broker = VirtualBroker()
    for number in range(40):
        topic = broker.topic(name(f"t{number}"))
        for each in range(20):
            broker.subscription(topic, f"s{each}")
        broker.publish(topic, 1 + number)
    broker.run(4)
    ranked: list[int] = [0]
    add, give_way = Largest.add, broker.give_way

    def counted(largest: Largest[Any], key: Any, item: Any) -> None:
        ranked[-1] += 1
        add(largest, key, item)

    async def turned(units: int) -> None:
        ranked.append(0)
        await give_way(units)

    monkeypatch.setattr(Largest, "add", counted)
    monkeypatch.setattr(broker, "give_way", turned)
    answer = top(broker, 1_000)
    assert len(answer["subscriptions"]) == sum(ranked) == 800
    assert max(ranked) <= PIECE_UNITS / BACKLOG_UNITS
