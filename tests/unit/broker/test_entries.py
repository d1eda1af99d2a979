"""Single entries, from memory and from disk."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import pytest

from headgate.base.errors import CorruptionError, StorageError
from headgate.base.instants import iso_time
from headgate.base.names import NamespaceName, parse_topic
from headgate.base.positions import Position
from headgate.base.units import KIB
from headgate.broker import entries
from headgate.broker.entries import EntryTrimmedError, FoundMessage, SingleEntryReader
from headgate.engine.errors import TopicFencedError
from headgate.engine.topic import Topic
from headgate.facade.admin_facade import AdminFacade
from headgate.ledger import CommitLog, LedgerSettings
from headgate.metadata.errors import RefusalError
from headgate.metadata.rows import TenantRow
from headgate.storage.fair_lane import IN_LANE_MAX
from headgate.storage.index_loader import IndexLoader
from headgate.testing import World
from headgate.wire.entry import LENGTH, build_entry, payload_of
from headgate.wire.messages import MessageMetadata
from headgate.wire.metadata_head import FIELDS_MAX, head_of

T = "persistent://public/default/t"


@pytest.fixture
def world() -> Iterator[World]:
    with World() as made:
        made.run(made.start())
        yield made


async def topic_of(world: World, *batches: list[bytes]) -> Topic:
    """The topic ``T`` with these entries; a list of several is a batch, an empty one is none."""
    topic = await world.broker.registry.create(parse_topic(T))
    producer = await (await world.connect()).producer(T)
    for batch in batches:
        await producer.send(batch[0], batch=batch if len(batch) > 1 else ())
    return topic


async def last(world: World, topic: Topic) -> FoundMessage:
    return await world.broker.entries.last_message(topic)


def test_an_entry_comes_from_disk_or_from_memory(world: World) -> None:
    topic = world.run(topic_of(world, [b"a"], [b"b"]))
    assert 1 not in topic.cache
    body = world.run(world.broker.entries.body(topic, 1))
    assert payload_of(body) == b"b"
    topic.cache[1] = b"from memory"
    assert world.run(world.broker.entries.body(topic, 1)) == b"from memory"


def test_the_last_messages_of_very_many_topics_of_one_tenant_hold_up_no_other_one(
    world: World,
) -> None:
    catalog, commit = world.broker.catalog, world.broker.commit
    row = TenantRow(admin_roles=(), allowed_clusters=("standalone",))

    async def story() -> None:
        await commit(catalog.plan_create_tenant("acme", row))
        await commit(catalog.plan_create_namespace(NamespaceName("acme", "n")))
        client = await world.connect()
        names = [f"persistent://acme/n/{at}" for at in range(5 * IN_LANE_MAX)]
        for name in (T, *names):
            await (await client.producer(name)).send(b"a")
        *topics, other = (world.broker.registry.get(parse_topic(name)) for name in (*names, T))
        answered: list[str] = []

        async def ask(topic: Topic | None) -> None:
            assert topic is not None
            await last(world, topic)
            answered.append(topic.name.tenant)

        crowd = [asyncio.ensure_future(ask(topic)) for topic in topics]
        await asyncio.sleep(0)
        await ask(other)
        assert len(answered) <= IN_LANE_MAX + 2
        await asyncio.gather(*crowd)

    world.run(story())


def test_a_topic_without_messages(world: World) -> None:
    topic = world.run(topic_of(world))
    assert world.run(last(world, topic)) == FoundMessage(Position(-1, -1))


def test_the_last_message_is_the_last_of_its_batch(world: World) -> None:
    topic = world.run(topic_of(world, [b"a"], [b"b", b"c", b"d"]))
    assert world.run(last(world, topic)).batch_index == 2


def test_a_message_by_itself_has_no_place_in_a_batch(world: World) -> None:
    topic = world.run(topic_of(world, [b"a"], [b"b"]))
    found = world.run(last(world, topic))
    assert (found.position.entry_id, found.batch_index) == (1, -1)


def test_a_batch_of_one_is_a_batch(world: World) -> None:
    topic = world.run(topic_of(world))

    async def send() -> None:
        producer = await (await world.connect()).producer(T)
        await producer.send(b"", batch=[b"only"])

    world.run(send())
    assert world.run(last(world, topic)).batch_index == 0


def test_an_entry_that_is_no_message_is_no_batch(world: World) -> None:
    topic = world.run(topic_of(world, [b"a"]))
    topic.cache[0] = b"?"
    assert world.run(last(world, topic)).batch_index == -1


def trims_while_it_reads(world: World, topic: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    """A read that comes when what it wants was trimmed and its place on the disk given back."""

    async def read(_reader: object, _topic: object, ordinal: int) -> bytes:
        topic.log.first = topic.log.end
        raise CorruptionError(f"entry {ordinal} is zeros")

    monkeypatch.setattr(SingleEntryReader, "body", read)


def test_a_message_that_is_trimmed_while_it_is_read_is_gone_and_not_damaged(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = world.run(topic_of(world, [b"a"], [b"b"]))
    place = topic.log.position(1)
    trims_while_it_reads(world, topic, monkeypatch)
    with pytest.raises(RefusalError) as caught:
        world.run(AdminFacade(world.broker, world.observer).entry(parse_topic(T), place))
    assert (caught.value.status, str(caught.value)) == (404, "Message id not found")


def test_a_last_message_that_is_trimmed_while_it_is_read_was_the_last(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = world.run(topic_of(world, [b"a"], [b"b"]))
    trims_while_it_reads(world, topic, monkeypatch)
    assert world.run(last(world, topic)).position.entry_id == -1


def test_the_last_message_of_a_topic_that_is_deleted_meanwhile_is_refused_and_not_damaged(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = world.run(topic_of(world, [b"a"]))

    async def read(_reader: object, _topic: object, ordinal: int) -> bytes:
        world.broker.engine.unload_topic(topic, deleted=True)
        raise CorruptionError(f"entry {ordinal} is zeros")

    monkeypatch.setattr(SingleEntryReader, "body", read)
    with pytest.raises(TopicFencedError, match="temporarily unavailable"):
        world.run(last(world, topic))


def meanwhile(
    world: World, monkeypatch: pytest.MonkeyPatch, happens: Callable[[], Awaitable[object]]
) -> None:
    """Let something happen while a look-up waits for the index."""
    look_up, has_happened = IndexLoader.look_up, False

    async def slow(loader: IndexLoader, action: Callable[[], object]) -> object:
        nonlocal has_happened
        if not has_happened:
            has_happened = True
            await happens()
        return await look_up(loader, action)

    monkeypatch.setattr(IndexLoader, "look_up", slow)


def test_an_entry_that_is_trimmed_while_its_index_is_read_is_gone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ended the broker: a read of an entry that the log does not have was taken for a bug."""
    topic = world.run(topic_of(world, [b"a"], [b"b"]))
    topic.cache.clear()
    place = topic.log.position(0)

    async def trim() -> None:
        log = world.broker.log.topic(topic.log.number)
        world.broker.log.stage_trim(log, log.end)
        await world.broker.when_durable()

    meanwhile(world, monkeypatch, trim)
    with pytest.raises(RefusalError) as caught:
        world.run(AdminFacade(world.broker, world.observer).entry(parse_topic(T), place))
    assert (caught.value.status, str(caught.value)) == (404, "Message id not found")


COLD_ENTRIES = 300


def test_a_last_message_whose_index_is_read_while_it_is_trimmed_was_the_last() -> None:
    """GET_LAST_MESSAGE_ID beside a truncation failed with an internal error."""
    settings = LedgerSettings(segment_bytes=64 * KIB, ledger_entries_max=50, index_cache_bytes=0)
    with World(ledger=settings) as world:
        world.run(world.start())
        topic = world.run(topic_of(world, *[[b"x"]] * COLD_ENTRIES))
        other = parse_topic(f"{T}-other")

        async def fill() -> None:
            producer = await (await world.connect()).producer(other.full)
            for _ in range(30):
                await producer.send(b"x" * 10_000)
            await asyncio.sleep(5)

        world.run(fill())
        assert not topic.log.is_indexed(COLD_ENTRIES - 1)

        async def story() -> None:
            producer = await (await world.connect()).producer(T)
            read_lane = world.lanes[1]
            read_lane.freeze()
            asked = asyncio.ensure_future(last(world, topic))
            await asyncio.sleep(0)
            end = [await producer.send(b"x") for _ in range(3)][-1]
            log = world.broker.log.topic(topic.log.number)
            world.broker.log.stage_trim(log, log.end)
            await world.broker.when_durable()
            read_lane.thaw()
            assert await asked == FoundMessage(end._replace(entry_id=-1))

        world.run(story())


def test_the_last_message_that_is_trimmed_while_its_index_is_read_was_the_last(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = world.run(topic_of(world, [b"a"], [b"b"]))
    topic.cache.clear()
    read = SingleEntryReader.body

    async def trimmed(reader: SingleEntryReader, of: Topic, ordinal: int) -> bytes:
        monkeypatch.setattr(SingleEntryReader, "body", read)
        log = world.broker.log.topic(topic.log.number)
        world.broker.log.stage_trim(log, log.end)
        await world.broker.when_durable()
        return await read(reader, of, ordinal)

    monkeypatch.setattr(SingleEntryReader, "body", trimmed)
    assert world.run(last(world, topic)).position.entry_id == -1


def test_an_entry_of_a_topic_that_is_deleted_while_its_index_is_read_is_refused(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = world.run(topic_of(world, [b"a"]))
    topic.cache.clear()
    meanwhile(world, monkeypatch, lambda: world.broker.registry.delete(topic.name, force=True))
    with pytest.raises(TopicFencedError):
        world.run(world.broker.entries.body(topic, 0))


def test_what_is_removed_while_it_is_read_is_no_error_of_the_disk(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = world.run(topic_of(world, [b"a"], [b"b"]))
    topic.cache.clear()

    def removed(_log: object, _plan: object) -> list[object]:
        topic.log.first = topic.log.end
        raise StorageError("reading /data/1.log failed: no such file", retryable=True)

    monkeypatch.setattr(CommitLog, "read", removed)
    with pytest.raises(EntryTrimmedError):
        world.run(world.broker.entries.body(topic, 0))


def test_an_entry_of_a_topic_that_is_deleted_while_it_is_read_is_not_damaged(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another record has its place by then: the request answered 500 and spoke of damage."""
    topic = world.run(topic_of(world, [b"a"]))
    topic.cache.clear()
    place = topic.log.position(0)

    def reused(_log: object, _plan: object) -> list[object]:
        world.broker.engine.unload_topic(topic, deleted=True)
        raise CorruptionError("entry 0 is damaged: another record is in its place")

    monkeypatch.setattr(CommitLog, "read", reused)
    with pytest.raises(RefusalError, match="temporarily unavailable") as caught:
        world.run(AdminFacade(world.broker, world.observer).entry(parse_topic(T), place))
    assert caught.value.status == 503


def test_when_all_was_given_up_the_last_message_is_before_the_first(world: World) -> None:
    topic = world.run(topic_of(world, [b"a"]))
    log = world.broker.log.topic(topic.log.number)
    world.broker.log.stage_trim(log, log.end)
    world.run(world.broker.when_durable())
    assert world.run(last(world, topic)).position.entry_id == -1


def test_a_message_is_read_with_its_properties_and_event_time(world: World) -> None:
    async def play() -> None:
        topic = await topic_of(world)
        producer = await (await world.connect()).producer(T)
        metadata = MessageMetadata(
            producer_name=producer.name, sequence_id=1, publish_time=5, event_time=1_000
        )
        metadata.properties.add(key="team", value="red")
        producer.entry = lambda *_, **__: build_entry(metadata, b"x")  # type: ignore[method-assign]
        await producer.send(b"x")
        entry = await world.broker.entries.stored_entry(topic, 0)
        assert entry.properties == (("team", "red"),)
        assert entry.event_time == iso_time(1_000)

    world.run(play())


def test_the_last_message_is_read_and_looked_at_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look costs what its producer put into the metadata, and asking costs 17 bytes."""
    topic = world.run(topic_of(world, [b"a"]))
    looks, reads, read = [], [], SingleEntryReader.body

    def look(body: bytes) -> MessageMetadata:
        looks.append(body)
        return head_of(body)

    async def body(reader: SingleEntryReader, topic: Topic, ordinal: int) -> bytes:
        reads.append(ordinal)
        return await read(reader, topic, ordinal)

    monkeypatch.setattr(entries, "head_of", look)
    monkeypatch.setattr(SingleEntryReader, "body", body)

    async def ask(times: int) -> list[FoundMessage]:
        return await asyncio.gather(*(last(world, topic) for _ in range(times)))

    assert 0 not in topic.cache
    assert {found.batch_index for found in world.run(ask(50))} == {-1}
    assert (len(reads), len(looks)) == (1, 1)
    world.run(ask(50))
    assert (len(reads), len(looks)) == (1, 1)

    async def send() -> None:
        producer = await (await world.connect()).producer(T)
        await producer.send(b"", batch=[b"only"])

    world.run(send())
    assert {found.batch_index for found in world.run(ask(2))} == {0}
    assert (len(reads), len(looks)) == (2, 2)


def test_a_read_of_the_last_message_outlives_who_asked_first(world: World) -> None:
    topic = world.run(topic_of(world, [b"a"]))

    async def play() -> None:
        first = asyncio.ensure_future(last(world, topic))
        second = asyncio.ensure_future(last(world, topic))
        await asyncio.sleep(0)
        first.cancel()
        assert (await second).batch_index == -1
        assert not world.broker.entries._reads

    world.run(play())


def test_an_entry_of_an_earlier_release_with_very_many_properties_is_read_in_part(
    world: World,
) -> None:
    topic = world.run(topic_of(world, [b"a"]))
    data = MessageMetadata(producer_name="p", sequence_id=1, publish_time=1).SerializeToString()
    data += b"\x22\x06\x0a\x01a\x12\x01b" * 620_000
    topic.cache[0] = LENGTH.pack(len(data)) + data + b"payload"
    entry = world.run(world.broker.entries.stored_entry(topic, 0))
    assert entry.payload == b"payload"
    assert len(entry.properties) < FIELDS_MAX
