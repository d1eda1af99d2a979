"""Counts of backlogs: every one is what a walk over all entries finds."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from headgate.base.names import parse_topic
from headgate.broker import backlog_analysis
from headgate.broker.backlog_analysis import BacklogCount, count_backlog, nth_unacked
from headgate.broker.slices import AdminTurns
from headgate.engine.errors import TopicFencedError
from headgate.engine.subscription import Subscription
from headgate.ledger import LedgerSettings
from headgate.testing import World

T = "persistent://public/default/t"
SMALL = LedgerSettings(segment_bytes=64 * 1024, ledger_entries_max=50)


@pytest.fixture(params=[2, 64])
def world(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr(backlog_analysis, "RANGES_PER_SLICE", request.param)
    with World(ledger=SMALL) as made:
        made.run(made.start())
        yield made


async def furnish(world: World, count: int) -> Subscription:
    """A subscription with ``count`` entries; entry n has n % 4 + 1 messages."""
    topic = await world.broker.registry.create(parse_topic(T))
    made = await world.broker.subscriptions.create(topic, "s", at_ordinal=0, properties={})
    producer = await (await world.connect()).producer(T)
    for number in range(count):
        batch = [b"x"] * (number % 4 + 1)
        await producer.send(b"x", batch=batch if len(batch) > 1 else ())
    return made


async def counted(world: World, subscription: Subscription, start: int = 0) -> BacklogCount:
    index = world.broker.logs.of(subscription.topic).index
    return await count_backlog(subscription, start, index, AdminTurns(world.broker))


def walked(subscription: Subscription, start: int = 0) -> BacklogCount:
    """The same by looking at every entry."""
    acks, log = subscription.acks, subscription.topic.log
    left = [n for n in range(max(start, log.first), log.end) if not acks.is_acked(n)]
    messages = sum(log.message_count(n) - acks.partly_acked(n) for n in left)
    return BacklogCount(len(left), messages, *((left[0], left[-1]) if left else (None, None)))


def test_without_a_backlog_there_is_nothing_to_count(world: World) -> None:
    subscription = world.run(furnish(world, 3))
    subscription.skip_to(3)
    assert world.run(counted(world, subscription)) == BacklogCount()
    assert world.run(nth_unacked(subscription, 1, AdminTurns(world.broker))) is None


@pytest.mark.parametrize(
    "acked", [[], [0, 1], [5], [1, 3, 5, 7, 9, 11], [38, 39], [*range(10, 20), 39], [*range(39)]]
)
def test_holes_are_left_out(world: World, acked: list[int]) -> None:
    async def story() -> None:
        subscription = await furnish(world, 40)
        for ordinal in acked:
            subscription.acks.ack(ordinal)
        subscription.acks.ack_messages(22, 0b101, 3)
        subscription.count_done()
        for start in (0, 1, 6, 12, 22, 39, 40):
            assert await counted(world, subscription, start) == walked(subscription, start)
        left = [n for n in range(40) if not subscription.acks.is_acked(n)]
        turns = AdminTurns(world.broker)
        found = [await nth_unacked(subscription, n + 1, turns) for n in range(len(left))]
        assert found == left
        assert await nth_unacked(subscription, len(left) + 1, turns) is None

    world.run(story())


def test_entries_whose_index_is_on_the_disk(world: World) -> None:
    async def story() -> None:
        subscription = await furnish(world, 400)
        topic = subscription.topic
        producer = await (await world.connect()).producer(f"{T}-other")
        for _ in range(30):
            await producer.send(b"x" * 10_000)  # the segments of the entries are sealed
        await asyncio.sleep(5)
        assert topic.log.memory_first > 0
        for ordinal in range(3, 300, 7):
            subscription.acks.ack(ordinal)
        found = await counted(world, subscription)
        assert found.entries == 400 - len(range(3, 300, 7))
        assert found.messages == sum(
            n % 4 + 1 for n in range(400) if n not in set(range(3, 300, 7))
        )

    world.run(story())


def test_a_subscription_that_goes_meanwhile_ends_the_count(world: World) -> None:
    async def story() -> None:
        subscription = await furnish(world, 400)
        for ordinal in range(3, 300, 2):
            subscription.acks.ack(ordinal)
        counting = asyncio.ensure_future(counted(world, subscription))
        await asyncio.sleep(0)
        subscription.topic.remove_subscription("s")
        with pytest.raises(TopicFencedError):
            await counting

    world.run(story())
