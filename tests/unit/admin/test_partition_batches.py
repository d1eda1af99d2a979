"""Work on many partitions: bounded at a time, and every one is asked."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, cast

import pytest

from headgate.admin.partition_batches import (
    AT_ONCE,
    BEGUN_PER_PIECE,
    LOOKED_AT_ONCE,
    NAMES_OF_LOOK,
    outcome_of,
    results_of,
    subscriptions_of,
)
from headgate.admin.routing import Call, Progress
from headgate.admin.subscriptions import _on_all
from headgate.base.names import TopicName, parse_topic
from headgate.metadata.errors import RefusalError
from tests.unit.admin.conftest import Ask
from tests.unit.admin.fake_facade import FakeFacade, FakeSubscription

PARTS = [parse_topic(f"t-partition-{index}") for index in range(2 * AT_ONCE + 5)]


class Worker:
    """Counts how many calls run at once."""

    def __init__(self) -> None:
        self.running = self.most = 0
        self.done: list[int] = []

    async def work(self, part: TopicName) -> int:
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(0)
        self.running -= 1
        self.done.append(part.partition)
        if part.partition in (3, 70):
            raise RefusalError(404, f"partition {part.partition}")
        return part.partition


def call_with(facade: FakeFacade) -> Call:
    return cast(Call, SimpleNamespace(facade=facade, progress=Progress()))


def test_some_at_a_time(broker: FakeFacade) -> None:
    worker = Worker()
    results, failure = asyncio.run(outcome_of(call_with(broker), PARTS, worker.work))
    assert worker.most == AT_ONCE
    assert broker.gave_way == len(PARTS) // BEGUN_PER_PIECE
    assert len(worker.done) == len(PARTS)
    assert str(failure) == "partition 3"
    assert results == [index for index in range(len(PARTS)) if index not in (3, 70)]


def test_requests_that_begin_together_give_way_before_their_first_partitions(
    broker: FakeFacade,
) -> None:
    """Sixteen may begin in one iteration of the loop: 1,024 partitions."""
    begun: list[int] = []

    async def work(part: TopicName) -> None:
        begun.append(broker.gave_way)

    asyncio.run(outcome_of(call_with(broker), PARTS[:AT_ONCE], work))
    assert min(begun) == AT_ONCE // BEGUN_PER_PIECE
    asyncio.run(outcome_of(call_with(broker), PARTS[:1], work))
    assert begun[-1] == AT_ONCE // BEGUN_PER_PIECE  # nothing is late for a single topic


def test_a_harmless_failure_counts_if_all_failed_with_it(broker: FakeFacade) -> None:
    async def refuse(part: TopicName) -> int:
        raise RefusalError(409 if part.partition == 70 else 404, f"partition {part.partition}")

    def failure_of(parts: list[TopicName], work: Any) -> str:
        return str(asyncio.run(outcome_of(call_with(broker), parts, work, 404))[1])

    assert failure_of(PARTS[:70], refuse) == "partition 0"
    assert failure_of(PARTS, refuse) == "partition 70"
    assert failure_of(PARTS, Worker().work) == "None"


def refusing(raised: list[weakref.ref[RefusalError]]) -> Callable[[TopicName], Awaitable[None]]:
    """Work that is refused for each partition; ``raised`` gets the errors."""

    async def refuse(part: TopicName) -> None:
        error = RefusalError(404, part.full)
        raised.append(weakref.ref(error))
        try:
            raise error
        finally:
            del error

    return refuse


def test_of_very_many_failures_those_of_one_batch_are_there(broker: FakeFacade) -> None:
    """512 requests about a subscription that none of 990 partitions has, 180 KB, took 670 MB, and
    a collection of all that held the loop for two seconds."""
    raised: list[weakref.ref[RefusalError]] = []
    refuse_one, most = refusing(raised), 0

    async def refuse(part: TopicName) -> None:
        nonlocal most
        most = max(most, sum(each() is not None for each in raised))
        await refuse_one(part)

    call = call_with(broker)
    for work in (results_of(call, PARTS, refuse), _on_all(call, PARTS, refuse, harmless=404)):
        with pytest.raises(RefusalError):
            asyncio.run(cast(Any, work))
    assert most <= 1 + AT_ONCE


def test_the_first_failure_is_raised_after_all_were_asked(broker: FakeFacade) -> None:
    worker = Worker()
    with pytest.raises(RefusalError, match="partition 3"):
        asyncio.run(results_of(call_with(broker), PARTS, worker.work))
    assert len(worker.done) == len(PARTS)
    assert asyncio.run(results_of(call_with(broker), PARTS[:3], worker.work)) == [0, 1, 2]


def test_a_failure_is_freed_without_a_collection(broker: FakeFacade) -> None:
    """Cycles would stay until a complete collection: errors of 4,096 partitions are 4 MB."""

    async def play() -> None:
        gone: list[weakref.ref[RefusalError]] = []
        refuse = refusing(gone)
        call = call_with(broker)
        for work in (results_of(call, PARTS, refuse), _on_all(call, PARTS, refuse, harmless=404)):
            with suppress(RefusalError):
                await work
        await asyncio.sleep(0)
        assert len(gone) == 2 * len(PARTS)
        assert [one() for one in gone if one() is not None] == []

    gc.disable()
    try:
        asyncio.run(play())
    finally:
        gc.enable()


WIDE = "/admin/v2/persistent/public/default/wide"
SUBSCRIPTION = f"{WIDE}/subscription/s"


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", f"{WIDE}/subscriptions", None),
        ("GET", f"{SUBSCRIPTION}/properties", None),
        ("PUT", f"{SUBSCRIPTION}/properties", {"a": "1"}),
        ("GET", f"{SUBSCRIPTION}/replicatedSubscriptionStatus", None),
        ("POST", f"{SUBSCRIPTION}/replicatedSubscriptionStatus", False),
    ],
)
def test_partitions_that_may_have_to_be_loaded_are_looked_at_in_slices(
    api: Ask, broker: FakeFacade, method: str, path: str, body: object
) -> None:
    """A request of a role that may consume loaded all partitions of a topic in one turn."""
    api("PUT", f"{WIDE}/partitions", 400)
    broker.topic(parse_topic("wide-partition-399")).subscriptions["s"] = FakeSubscription()
    broker.gave_way = 0
    assert api(method, path, body).status in (200, 204)
    assert broker.gave_way >= 400 // LOOKED_AT_ONCE - 1


def test_what_is_deleted_during_a_pause_is_left_out(api: Ask, broker: FakeFacade) -> None:
    api("PUT", f"{WIDE}/partitions", 20)
    parts = [parse_topic(f"wide-partition-{index}") for index in range(20)]
    names = {str(number): FakeSubscription() for number in range(LOOKED_AT_ONCE * NAMES_OF_LOOK)}
    broker.topic(parts[0]).subscriptions.update(names)

    async def look() -> list[int]:
        found = []
        async for part, names in subscriptions_of(call_with(broker), parts):
            if part.partition == 0:
                assert len(names) == LOOKED_AT_ONCE * NAMES_OF_LOOK
                broker.failures.append(RefusalError(404, "it is gone"))
            else:
                assert broker.gave_way  # so many subscriptions are a slice of their own
            found.append(part.partition)
        return found

    broker.gave_way = 0
    assert asyncio.run(look()) == [index for index in range(20) if index != 1]
