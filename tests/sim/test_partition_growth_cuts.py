"""Power cuts while a partitioned topic grows: no partition is left without its subscriptions.

The story is cut at many instants, spread over the whole of it. After each cut the broker starts on
what its disk holds, and answers to clients must hold: a subscription that every partition had
before the growth is on each partition that exists now, and owes every message that has a receipt.
"""

from __future__ import annotations

import asyncio
from functools import cache

import pytest

from headgate.base.errors import HeadgateError
from headgate.base.names import parse_topic
from headgate.base.positions import LATEST
from headgate.facade.admin_facade import AdminFacade
from headgate.facade.protocol import AtPosition
from headgate.testing import World

BASE = parse_topic("persistent://public/default/orders")
CUTS = 120


class Story:
    """Two partitions become four, one subscription is deleted before and one after that."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.done: set[str] = set()
        """What was answered."""
        self.receipts = [0, 0, 0, 0]

    async def play(self) -> None:
        facade = AdminFacade(self.world.broker, self.world.observer)
        catalog = facade.catalog
        await self.ask("made", facade.commit(catalog.plan_create_partitioned(BASE, 2, now_ms=1)))
        for name in ("kept", "before"):
            for index in range(2):
                part, properties = BASE.partition_name(index), {"of": name}
                await self.ask(
                    f"{name} {index}",
                    facade.create_subscription(part, name, AtPosition(LATEST), properties),
                )
        for index in range(2):
            part = BASE.partition_name(index)
            await self.ask(
                f"deleted {index}", facade.delete_subscription(part, "before", force=False)
            )
        await self.ask("grown", facade.commit(catalog.plan_grow_partitioned(BASE, 4, now_ms=2)))
        client = await self.world.connect()
        for index in range(4):
            producer = await client.producer(BASE.partition_name(index).full)
            await producer.send(b"x")
            self.receipts[index] += 1
        last = BASE.partition_name(3)
        await self.ask("left", facade.delete_subscription(last, "kept", force=False))

    async def ask(self, what: str, work: object) -> None:
        await self.world.ask(work)  # type: ignore[arg-type]
        self.done.add(what)

    def check(self) -> None:
        broker = self.world.broker
        rows = [broker.catalog.topic(BASE.partition_name(i).full) for i in range(4)]
        topics = [broker.registry.get(parse_topic(row.name)) for row in rows if row is not None]
        if "grown" in self.done:
            assert len(topics) == 4
        for index, topic in enumerate(topics):
            assert topic is not None
            names = set(topic.subscriptions)
            if len(topics) < 4:
                continue
            assert "before" not in names, "a deleted subscription came back"
            if index == 3 and "left" in self.done:
                assert "kept" not in names
            elif index < 3:
                assert "kept" in names
                kept = topic.subscriptions["kept"]
                assert kept.properties == {"of": "kept"}
                assert kept.backlog_entries >= self.receipts[index]


async def played(world: World, until_s: float | None) -> tuple[Story, float]:
    """A story that is cut at an instant, or whole; and how long it took."""
    story = Story(world)
    begin_s = world.now_s
    task = asyncio.ensure_future(story.play())
    await asyncio.wait([task], timeout=until_s)
    took_s = world.now_s - begin_s
    if until_s is None:
        task.result()
        return story, took_s
    world.crash()
    await asyncio.wait([task], timeout=1)  # who connects just then is never answered
    if task.done() and not task.cancelled() and (error := task.exception()) is not None:
        assert isinstance(error, HeadgateError), error
    return story, took_s


@cache
def length_s() -> float:
    with World(5) as world:
        world.run(world.start())
        story, took_s = world.run(played(world, None))
        story.check()
        assert story.receipts == [1, 1, 1, 1]
        assert set(world.broker.registry.get(BASE.partition_name(3)).subscriptions) == set()
    return took_s


@pytest.mark.parametrize("part", range(4))
def test_a_cut_at_any_instant_of_the_growth(part: int) -> None:
    for index in range(part, CUTS, 4):
        with World(5) as world:
            world.run(world.start())
            story, _ = world.run(played(world, length_s() * index / CUTS))
            world.run(world.start())
            story.check()
            world.run(asyncio.sleep(1))
            rows = [world.broker.catalog.topic(name) for name in
                    world.broker.catalog.topics(BASE.namespace)]  # fmt: skip
            assert not any(row.lacks_subscriptions for row in rows if row is not None)
            # What was mended holds over another cut.
            world.crash()
            world.run(world.start())
            story.check()
