"""Statistics over HTTP."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from headgate.admin.app import AdminApp
from headgate.admin.topic_stats import SLICE_PARTITIONS
from headgate.base.names import TopicName, parse_topic
from headgate.metadata.errors import RefusalError
from tests.unit.admin.client import ask_async
from tests.unit.admin.conftest import Ask
from tests.unit.admin.fake_facade import FakeFacade, FakeSubscription, FakeTopic

P = "/admin/v2/persistent/public/default"


@pytest.fixture
def used(broker: FakeFacade, api: Ask) -> FakeFacade:
    """``t``, and ``pt`` with two partitions, each with producer, consumer and backlog."""
    api("PUT", f"{P}/t")
    api("PUT", f"{P}/pt/partitions", 2)
    for name in ("t", "pt-partition-0", "pt-partition-1"):
        topic = broker.topic(parse_topic(name))
        topic.entries_ms.extend([10, 20, 30])
        topic.producers.append("p")
        topic.subscriptions["s"] = FakeSubscription(1, ["c"])
    return broker


@pytest.mark.usefixtures("used")
def test_the_query_says_what_is_wanted(api: Ask) -> None:
    plain = api("GET", f"{P}/t/stats").json()
    assert plain["subscriptions"]["s"]["backlogSize"] == 200
    assert plain["subscriptions"]["s"]["earliestMsgPublishTimeInBacklog"] == 0
    asked = api(
        "GET",
        f"{P}/t/stats?subscriptionBacklogSize=false&getEarliestTimeInBacklog=true"
        "&excludePublishers=true&excludeConsumers=true&authoritative=false",
    ).json()
    assert asked["publishers"] == []
    assert asked["subscriptions"]["s"]["consumers"] == []
    assert asked["subscriptions"]["s"]["backlogSize"] == -1
    assert asked["subscriptions"]["s"]["earliestMsgPublishTimeInBacklog"] == 20


@pytest.mark.usefixtures("used")
def test_partitions_are_summed_and_shown(api: Ask) -> None:
    stats = api("GET", f"{P}/pt/partitioned-stats").json()
    assert stats["msgInCounter"] == 6
    assert stats["metadata"] == {"partitions": 2, "deleted": False}
    assert [part["msgInCounter"] for part in stats["partitions"].values()] == [3, 3]
    summed = api("GET", f"{P}/pt/partitioned-stats?perPartition=false").json()
    assert (summed["msgInCounter"], summed["partitions"]) == (6, {})


def test_a_partition_that_vanishes_is_left_out_and_other_failures_are_not(
    api: Ask, used: FakeFacade
) -> None:
    used.failures.append(RefusalError(404, "gone"))
    assert len(api("GET", f"{P}/pt/partitioned-stats").json()["partitions"]) == 1
    used.failures.append(RefusalError(503, "wait"))
    assert api("GET", f"{P}/pt/partitioned-stats").status == 503


@pytest.mark.usefixtures("used")
def test_internal(api: Ask) -> None:
    stats = api("GET", f"{P}/t/internalStats").json()
    assert stats["lastConfirmedEntry"] == "8:2"
    assert "metadata" not in stats["ledgers"][0]
    assert "metadata" in api("GET", f"{P}/t/internalStats?metadata=true").json()["ledgers"][0]
    parts = api("GET", f"{P}/pt/partitioned-internalStats").json()
    assert list(parts) == ["metadata", "partitions"]
    assert len(parts["partitions"]) == 2


@pytest.mark.usefixtures("used")
def test_each_kind_has_its_own_path(api: Ask) -> None:
    assert api("GET", f"{P}/pt/stats").reason == "Topic persistent://public/default/pt not found"
    assert api("GET", f"{P}/t/partitioned-stats").status == 404
    assert api("GET", f"{P}/pt-partition-0/partitioned-stats").status == 412
    assert api("GET", f"{P}/pt-partition-0/stats").status == 200


@pytest.mark.parametrize("kind", ["partitioned-stats", "partitioned-internalStats"])
def test_many_partitions_are_looked_at_in_slices(
    broker: FakeFacade, api: Ask, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    count = 5 * SLICE_PARTITIONS
    api("PUT", f"{P}/many/partitions", count)
    looked = [0]
    topic = broker.topic

    def counted(name: TopicName) -> FakeTopic:
        looked[0] += 1
        return topic(name)

    monkeypatch.setattr(broker, "topic", counted)

    async def story() -> list[int]:
        app = AdminApp(broker, broker.clock)
        asking = asyncio.ensure_future(ask_async(app, "GET", f"{P}/many/{kind}"))
        seen = [0]
        while not asking.done():
            await asyncio.sleep(0)
            seen.append(looked[0])
        assert len((await asking).json()["partitions"]) == count
        return [after - before for before, after in pairwise(seen)]

    assert max(asyncio.run(story())) <= SLICE_PARTITIONS
