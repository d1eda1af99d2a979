"""Single messages and stored entries over a whole broker."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from headgate.base.names import parse_topic
from headgate.base.positions import EARLIEST, LATEST, Position
from headgate.engine.topic import Topic
from headgate.facade.admin_facade import AdminFacade
from headgate.facade.message_protocol import BacklogAnalysis
from headgate.facade.protocol import AtPosition
from headgate.metadata.errors import RefusalError
from headgate.metadata.policies import Retention
from headgate.testing import World
from headgate.wire.codes import SubscriptionType

T = "persistent://public/default/t"
NAME = parse_topic(T)


class Story:
    """A broker with topic ``T``: entries 0 to 4, of one to five messages; ``s`` is at 0."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.broker = world.run(world.start())
        self.facade = AdminFacade(self.broker, world.observer)
        self.messages = self.facade.messages
        self.positions: list[Position] = []
        world.run(self._begin())

    async def _begin(self) -> None:
        self.client = await self.world.connect()
        await self.broker.registry.create(NAME)
        await self.facade.create_subscription(NAME, "s", AtPosition(LATEST), {})
        self.producer = await self.client.producer(T)
        for count in range(1, 6):
            batch = [b"x"] * count if count > 1 else ()
            self.positions.append(await self.producer.send(b"%d" % count, batch=batch))

    async def ack(self, *ordinals: int) -> None:
        consumer = await self.client.subscribe(T, "s", kind=SubscriptionType.SHARED)
        received = [await consumer.receive() for _ in self.positions]
        for ordinal in ordinals:
            await consumer.ack(received[ordinal].position)
        await asyncio.sleep(1)
        await consumer.close()

    def refused(self, call: object) -> tuple[int, str]:
        with pytest.raises(RefusalError) as caught:
            self.world.run(call)  # type: ignore[arg-type]
        return caught.value.status, caught.value.reason


@pytest.fixture
def story() -> Iterator[Story]:
    with World() as world:
        yield Story(world)


def test_a_backlog_is_counted_in_entries_and_messages(story: Story) -> None:
    async def counted(start: Position | None = None, excluded: bool = False) -> BacklogAnalysis:
        return await story.messages.analyze_backlog(NAME, "s", start, excluded=excluded)

    found = story.world.run(counted())
    assert (found.entries, found.messages, found.aborted) == (5, 15, False)
    assert found.filter_accepted_messages == 15
    assert found.first_message_id == str(story.positions[0])
    assert found.last_message_id == str(story.positions[4])
    story.world.run(story.ack(1, 4))
    found = story.world.run(counted())
    assert (found.entries, found.messages) == (3, 8)
    assert found.last_message_id == str(story.positions[3])
    found = story.world.run(counted(story.positions[2], excluded=True))
    assert (found.entries, found.messages) == (1, 4)
    assert story.world.run(counted(EARLIEST)).entries == 3
    assert story.world.run(counted(LATEST)) == BacklogAnalysis()
    status, reason = story.refused(
        story.messages.analyze_backlog(NAME, "none", None, excluded=False)
    )
    assert (status, reason) == (404, f"Subscription none not found for topic {T}")
    absent = parse_topic("absent")
    assert story.refused(story.messages.bytes_from(absent, EARLIEST))[0] == 404


def test_peeking_takes_nothing(story: Story) -> None:
    story.world.run(story.ack(0, 2))
    for number, ordinal in ((1, 1), (2, 3), (3, 4)):
        placed = story.world.run(story.messages.peek(NAME, "s", number))
        assert placed.position == story.positions[ordinal]
        assert placed.entry.batch_size == ordinal + 1
    assert story.refused(story.messages.peek(NAME, "s", 4)) == (404, "Message not found")
    assert story.world.run(story.messages.peek(NAME, "s", 1)).position == story.positions[1]


def test_the_memory_for_an_entry_is_reserved_before_it_is_read(story: Story) -> None:
    """A request of 100 bytes may ask for the largest message, hundreds at once."""
    topic = story.broker.engine.topics[T]
    read = story.broker.entries.body
    done: list[object] = []

    async def body(of: Topic, ordinal: int) -> bytes:
        done.append(ordinal)
        return await read(of, ordinal)

    story.broker.entries.body = body  # type: ignore[method-assign]

    async def reserve(size_bytes: int) -> None:
        done.append(("reserved", size_bytes))

    for ask in (
        lambda: story.messages.peek(NAME, "s", 2, reserve),
        lambda: story.messages.examine(NAME, 2, reserve, from_end=False),
        lambda: story.facade.entry(NAME, story.positions[1], reserve),
    ):
        done.clear()
        story.world.run(ask())
        assert done == [("reserved", 2 * topic.log.size_bytes(1)), 1]


def test_an_entry_that_is_gone_when_there_is_memory_for_it(story: Story) -> None:
    async def truncate(_: int) -> None:
        await story.messages.truncate(NAME)

    async def unload(_: int) -> None:
        await story.broker.registry.unload(NAME)

    asked = story.messages.examine(NAME, 1, unload, from_end=False)
    assert story.refused(asked)[0] == 503
    asked = story.messages.examine(NAME, 1, truncate, from_end=False)
    assert story.refused(asked) == (404, "Message not found")


def test_entries_are_examined_from_either_end(story: Story) -> None:
    def found(number: int, *, from_end: bool) -> Position:
        return story.world.run(story.messages.examine(NAME, number, from_end=from_end)).position

    assert found(1, from_end=False) == story.positions[0]
    assert found(5, from_end=False) == story.positions[4]
    assert found(1, from_end=True) == story.positions[4]
    assert found(4, from_end=True) == story.positions[1]
    status, reason = story.refused(story.messages.examine(NAME, 6, from_end=True))
    assert (status, reason) == (404, f"Message 6 not found: {T} holds 5 entries")


def test_bytes_from_a_position_on(story: Story) -> None:
    async def size(position: Position) -> int:
        return await story.messages.bytes_from(NAME, position)

    topic = story.broker.engine.topics[T]
    whole = story.world.run(size(EARLIEST))
    assert whole == topic.storage_bytes()
    assert story.world.run(size(LATEST)) == 0
    sizes = [story.world.run(size(position)) for position in story.positions]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[4] == topic.log.size_bytes(4)


def test_truncation_ignores_retention_and_lasts(story: Story) -> None:
    catalog = story.facade.catalog
    plan = catalog.plan_topic_policies(NAME, retention=Retention(-1, -1))
    story.world.run(story.facade.commit(plan))
    story.world.run(story.messages.truncate(NAME))
    story.world.advance(1)
    topic = story.broker.engine.topics[T]
    assert (topic.log.first, topic.log.end) == (5, 5)
    assert topic.subscriptions["s"].backlog_entries == 0
    assert story.refused(story.messages.examine(NAME, 1, from_end=True)) == (
        412, "Could not examine messages due to the total message is zero",
    )  # fmt: skip
    position = story.world.run(story.producer.send(b"later"))
    assert position > story.positions[4]
    story.world.advance(60)
    assert (topic.log.first, topic.log.end) == (5, 6)  # retention keeps what came later
    story.world.crash()
    story.world.run(story.world.start())
    topic = story.world.broker.engine.topics[T]
    assert (topic.log.first, topic.log.end) == (5, 6)
    assert topic.subscriptions["s"].backlog_entries == 1


def test_truncation_passes_what_consumers_hold(story: Story) -> None:
    async def play() -> None:
        consumer = await story.client.subscribe(T, "s", kind=SubscriptionType.SHARED)
        received = [await consumer.receive() for _ in range(5)]
        await story.messages.truncate(NAME)
        await consumer.ack(received[2].position)
        await asyncio.sleep(60)
        await story.producer.send(b"later")
        await consumer.ack((await consumer.receive()).position)

    story.world.run(play())
    story.world.advance(60)
    topic = story.broker.engine.topics[T]
    assert topic.log.first >= 5
    assert topic.subscriptions["s"].backlog_entries == 0


def test_a_topic_without_messages_is_truncated_twice(story: Story) -> None:
    for _ in range(2):
        story.world.run(story.messages.truncate(NAME))
        story.world.advance(40)
    assert story.broker.engine.topics[T].log.first == 5


def test_a_trim_does_not_wait_for_the_sweep(story: Story) -> None:
    topic = story.broker.engine.topics[T]
    topic.subscriptions["s"].skip_to(5)
    story.world.run(story.messages.trim(NAME))
    story.world.run(story.broker.when_durable(topic))
    assert topic.log.first == 5
