"""Subscriptions over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from headgate.admin.app import AdminApp
from headgate.admin.subscriptions import (
    CHECKS_PER_TURN,
    EXPIRED_AT_ONCE,
    EXPIRED_PER_PIECE,
    NAME_BYTES,
)
from headgate.base.names import TopicName, parse_topic
from headgate.metadata.errors import RefusalError
from tests.unit.admin.client import ask_async
from tests.unit.admin.conftest import Ask
from tests.unit.admin.fake_facade import NOW_MS, FakeFacade, FakeSubscription

P = "/admin/v2/persistent/public/default"
S = f"{P}/t/subscription/s"
PS = f"{P}/pt/subscription/s"


class Turns:
    """Counts what happens between two pauses of a broker."""

    def __init__(self, broker: FakeFacade, monkeypatch: pytest.MonkeyPatch) -> None:
        self.most = self._now = 0
        give_way = broker.give_way

        async def gave_way() -> None:
            self._now = 0
            await give_way()

        monkeypatch.setattr(broker, "give_way", gave_way)

    def note(self) -> None:
        self._now += 1
        self.most = max(self.most, self._now)


@pytest.fixture(autouse=True)
def topics(broker: FakeFacade, api: Ask) -> None:
    """``t`` with three messages, 30, 20 and 10 s old, and ``pt`` with two such partitions."""
    api("PUT", f"{P}/t")
    api("PUT", f"{P}/pt/partitions", 2)
    for name in ("t", "pt-partition-0", "pt-partition-1"):
        broker.topic(parse_topic(name)).entries_ms.extend(
            [NOW_MS - 30_000, NOW_MS - 20_000, NOW_MS - 10_000]
        )


def sub(broker: FakeFacade, topic: str = "t") -> FakeSubscription:
    return broker.topic(parse_topic(topic)).subscriptions["s"]


@pytest.mark.parametrize(
    ("body", "place"),
    [
        (None, 3),
        ("latest", 3),
        ("earliest", 0),
        ({"ledgerId": 8, "entryId": 1}, 1),
        ({"ledgerId": 8, "entryId": 1, "excluded": True}, 2),
        ({"ledgerId": 8, "entryId": 1, "isExcluded": True}, 2),
        ({"ledgerId": -1, "entryId": -1, "partitionIndex": -1}, 0),
    ],
)
def test_create(api: Ask, broker: FakeFacade, body: object, place: int) -> None:
    assert api("PUT", f"{S}?replicated=false", body).status == 204
    assert sub(broker).next == place
    answer = api("PUT", S, body)
    assert (answer.status, answer.reason) == (409, "Subscription already exists for topic")


def test_create_with_properties(api: Ask, broker: FakeFacade) -> None:
    api("PUT", S, {"ledgerId": -1, "entryId": -1, "properties": {"a": "b"}})
    assert sub(broker).properties == {"a": "b"}


@pytest.mark.parametrize(
    "body", ["somewhere", {"ledgerId": 1}, {"ledgerId": "x", "entryId": 1}, []]
)
def test_a_place_that_is_none_creates_nothing(api: Ask, body: object) -> None:
    assert api("PUT", S, body).status == 400
    assert api("GET", f"{P}/t/subscriptions").json() == []


def test_create_creates_the_topic_if_it_may(api: Ask, broker: FakeFacade) -> None:
    assert api("PUT", f"{P}/new/subscription/s").status == 204
    broker.auto_partitions = 2
    assert api("PUT", f"{P}/new2/subscription/s").status == 204
    assert api("GET", f"{P}/new2/subscriptions").json() == ["s"]
    broker.auto_partitions = None
    answer = api("PUT", f"{P}/new3/subscription/s")
    assert (answer.status, answer.reason) == (
        412, "Topic does not exist and cannot be auto-created",
    )  # fmt: skip
    assert api("PUT", "/admin/v2/persistent/public/none/x/subscription/s").status == 404


def test_partitioned_create_and_delete(api: Ask, broker: FakeFacade) -> None:
    broker.topic(parse_topic("pt-partition-0")).subscriptions["s"] = FakeSubscription()
    assert api("PUT", PS).status == 204
    assert api("PUT", PS).status == 409
    assert api("GET", f"{P}/pt/subscriptions").json() == ["s"]
    del broker.topic(parse_topic("pt-partition-1")).subscriptions["s"]
    assert api("DELETE", PS).status == 204
    answer = api("DELETE", PS)
    assert (answer.status, answer.reason) == (404, "Subscription not found")


def test_partitions_that_are_added_while_a_subscription_is_made(
    api: Ask, broker: FakeFacade, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of them joined the others in time, one did not."""
    create, name = broker.create_subscription, parse_topic("pt")

    async def grows(topic: TopicName, *rest: Any) -> None:
        await create(topic, *rest)
        if broker.catalog.partitioned(name.full).partitions == 2:  # type: ignore[union-attr]
            await broker.commit(broker.catalog.plan_grow_partitioned(name, 4, now_ms=1))
            await create(name.partition_name(2), *rest)

    monkeypatch.setattr(broker, "create_subscription", grows)
    assert api("PUT", PS).status == 204
    parts = [broker.topic(name.partition_name(index)) for index in range(4)]
    assert all("s" in part.subscriptions for part in parts)


def test_a_subscription_of_many_partitions_takes_no_square_of_their_number(
    api: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 4,096 it held the loop for 1.4 s."""
    count, compared = 200, 0
    api("PUT", f"{P}/many/partitions", count)
    equals = TopicName.__eq__

    def counted(self: TopicName, other: object) -> bool:
        nonlocal compared
        compared += 1
        return equals(self, other)

    monkeypatch.setattr(TopicName, "__eq__", counted)
    assert api("PUT", f"{P}/many/subscription/s").status == 204
    assert compared < 10 * count


def test_delete(api: Ask, broker: FakeFacade) -> None:
    assert api("DELETE", S).reason == (
        "Subscription s not found for topic persistent://public/default/t"
    )
    api("PUT", S)
    sub(broker).consumers.append("c")
    assert api("DELETE", S).reason == "Subscription has active connected consumers"
    assert api("DELETE", f"{S}?force=true").status == 204
    api("PUT", PS)
    sub(broker, "pt-partition-1").consumers.append("c")
    assert api("DELETE", PS).status == 412


def test_skip(api: Ask, broker: FakeFacade) -> None:
    api("PUT", S, "earliest")
    assert api("POST", f"{S}/skip/2").status == 204
    assert sub(broker).next == 2
    assert api("POST", f"{S}/skip/-1").status == 400
    assert api("POST", f"{S}/skip/abc").status == 404
    assert api("POST", f"{PS}/skip/1").reason == (
        "Skip messages on a partitioned topic is not allowed"
    )


def test_skip_all(api: Ask, broker: FakeFacade) -> None:
    api("PUT", PS, "earliest")
    assert api("POST", f"{PS}/skip_all").status == 204
    assert [sub(broker, f"pt-partition-{i}").next for i in (0, 1)] == [3, 3]
    assert api("POST", f"{P}/pt/subscription/none/skip_all").status == 404


def test_reset(api: Ask, broker: FakeFacade) -> None:
    api("PUT", S)
    assert api("POST", f"{S}/resetcursor/{NOW_MS - 25_000}").status == 204
    assert sub(broker).next == 1
    assert api("POST", f"{S}/resetcursor", {"ledgerId": 8, "entryId": 2}).status == 204
    assert sub(broker).next == 2
    assert api("POST", f"{S}/resetcursor", "earliest").status == 204
    assert sub(broker).next == 0
    assert api("POST", f"{S}/resetcursor").status == 400
    api("PUT", PS)
    assert api("POST", f"{PS}/resetcursor/0").status == 204
    assert api("POST", f"{PS}/resetcursor", "earliest").reason == (
        "Reset-cursor at position is not allowed for partitioned-topic"
    )


def test_expire_by_age(api: Ask, broker: FakeFacade) -> None:
    api("PUT", S, "earliest")
    assert api("POST", f"{S}/expireMessages/15").status == 204
    assert sub(broker).next == 2
    answer = api("POST", f"{S}/expireMessages/15")
    assert answer.status == 409
    assert answer.reason.startswith("Expire message by timestamp not issued on topic persistent:")
    assert api("POST", f"{S}/expireMessages/-1").status == 400
    api("PUT", PS, "earliest")
    assert api("POST", f"{PS}/expireMessages/15").status == 204


def test_expiring_very_many_gives_way_to_others(
    api: Ask, broker: FakeFacade, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All 10,000 subscriptions of a topic moved in one turn."""
    subscriptions = broker.topic(parse_topic("t")).subscriptions
    for number in range(1_000):
        subscriptions[f"s{number}"] = FakeSubscription()
    turns, expire = Turns(broker, monkeypatch), broker.expire_messages

    async def counted(topic: TopicName, name: str, what: Any) -> bool:
        turns.note()
        if name == "s7":
            raise RefusalError(404, "it was deleted meanwhile")
        return await expire(topic, name, what)

    monkeypatch.setattr(broker, "expire_messages", counted)
    assert api("POST", f"{P}/t/all_subscription/expireMessages/15").status == 204
    moved = [name for name, one in subscriptions.items() if one.next == 2]
    assert set(subscriptions) - set(moved) == {"s7"}
    assert broker.gave_way >= 1_000 // EXPIRED_PER_PIECE
    assert turns.most <= EXPIRED_PER_PIECE * EXPIRED_AT_ONCE


def test_nothing_is_expired_any_more_once_a_failure_is_told(broker: FakeFacade) -> None:
    """All but the one that failed went on, uncounted, as far as there were subscriptions."""
    subscriptions = broker.topic(parse_topic("t")).subscriptions
    for number in range(200):
        subscriptions[f"s{number}"] = FakeSubscription()
    expire = broker.expire_messages

    async def failing(topic: TopicName, name: str, what: Any) -> bool:
        await asyncio.sleep(0)
        if name == "s7":
            raise RefusalError(503, "the subscription was closed")
        return await expire(topic, name, what)

    async def play() -> None:
        broker.expire_messages = failing  # type: ignore[method-assign]
        app, path = AdminApp(broker, broker.clock), f"{P}/t/all_subscription/expireMessages/15"
        assert (await ask_async(app, "POST", path)).status == 503
        moved = sum(one.next == 2 for one in subscriptions.values())
        assert moved > 0
        for _ in range(100):
            await asyncio.sleep(0)
        assert sum(one.next == 2 for one in subscriptions.values()) == moved

    asyncio.run(play())


def test_expiring_on_very_many_partitions_gives_way_to_others(
    api: Ask, broker: FakeFacade, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The subscriptions of all partitions were checked in one turn, if each had few."""
    api("PUT", f"{P}/wide/partitions", 400)
    for number in range(400):
        topic = broker.topic(parse_topic(f"wide-partition-{number}"))
        topic.subscriptions.update({"a": FakeSubscription(), "b": FakeSubscription()})
    turns, subscriptions = Turns(broker, monkeypatch), broker.subscriptions

    def counted(topic: TopicName) -> Any:
        turns.note()
        return subscriptions(topic)

    monkeypatch.setattr(broker, "subscriptions", counted)
    assert api("POST", f"{P}/wide/all_subscription/expireMessages/15").status == 204
    assert turns.most <= CHECKS_PER_TURN


def test_expire_to_position(api: Ask, broker: FakeFacade) -> None:
    api("PUT", S, "earliest")
    assert api("POST", f"{S}/expireMessages", {"ledgerId": 8, "entryId": 1}).status == 204
    assert sub(broker).next == 2
    body = {"ledgerId": 8, "entryId": 1, "partitionIndex": 3}
    assert api("POST", f"{S}/expireMessages", body).status == 412
    assert api("POST", f"{S}/expireMessages", "earliest").status == 409
    assert api("POST", f"{S}/expireMessages").status == 400
    assert api("POST", f"{PS}/expireMessages", "latest").status == 405


def test_expire_all(api: Ask, broker: FakeFacade) -> None:
    api("PUT", S, "earliest")
    api("PUT", f"{P}/t/subscription/end")
    assert api("POST", f"{P}/t/all_subscription/expireMessages/15").status == 204
    assert sub(broker).next == 2


def test_the_names_of_a_list_are_charged_before_they_are_gathered(
    api: Ask, broker: FakeFacade, monkeypatch: pytest.MonkeyPatch
) -> None:
    """512 requests for the 19,800 names of 990 partitions waited for memory with them: 1.2 GB."""
    for name in ("pt-partition-0", "pt-partition-1"):
        broker.topic(parse_topic(name)).subscriptions["s"] = FakeSubscription()
    steps: list[object] = []
    list_names, reserve = broker.subscriptions, broker.reserve_answer

    def subscriptions(part: TopicName) -> Sequence[str]:
        steps.append(part.partition)
        return list_names(part)

    async def reserve_answer(size_bytes: int, owner: str = "") -> None:
        steps.append(("reserved", size_bytes))
        await reserve(size_bytes, owner)

    monkeypatch.setattr(broker, "subscriptions", subscriptions)
    monkeypatch.setattr(broker, "reserve_answer", reserve_answer)
    assert api("GET", f"{P}/pt/subscriptions").json() == ["s"]
    assert steps == [0, 1, ("reserved", 2 * NAME_BYTES), 0, 1]
    assert broker.reserved_bytes == 0
