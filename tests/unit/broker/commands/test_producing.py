"""Producers are created with names and access modes, and closed after their receipts."""

from __future__ import annotations

import asyncio

import pytest

from headgate.base.errors import StorageError
from headgate.base.names import parse_topic
from headgate.base.positions import Position
from headgate.testing import RefusedError, World
from headgate.wire.codes import ProducerAccessMode, ServerError
from tests.unit.broker.playing import TOPIC, played


@played()
async def test_a_producers_name_is_taken_once(world: World) -> None:
    client = await world.connect()
    first = await client.producer(TOPIC, name="p")
    with pytest.raises(RefusedError) as refusal:
        await (await world.connect()).producer(TOPIC, name="p")
    assert refusal.value.code == ServerError.PRODUCER_BUSY
    assert await first.send(b"still here") is not None
    await first.close()
    again = await client.producer(TOPIC, name="p")
    assert again.name == "p"


@played()
async def test_a_silent_holder_of_a_name_gives_way(world: World) -> None:
    silent = await world.connect()
    await silent.producer(TOPIC, name="p")
    silent.transport.silence()
    before_s = world.now_s
    taken = await (await world.connect()).producer(TOPIC, name="p")
    assert taken.name == "p"
    assert world.now_s - before_s < 6


@played()
async def test_generated_names_differ(world: World) -> None:
    client = await world.connect()
    names = {(await client.producer(TOPIC)).name for _ in range(5)}
    assert len(names) == 5


@played()
async def test_an_exclusive_producer_is_alone(world: World) -> None:
    client = await world.connect()
    exclusive = await client.producer(TOPIC, access_mode=ProducerAccessMode.EXCLUSIVE)
    with pytest.raises(RefusedError) as refusal:
        await client.producer(TOPIC)
    assert refusal.value.code == ServerError.PRODUCER_BUSY
    await exclusive.close()
    await client.producer(TOPIC)
    with pytest.raises(RefusedError) as refusal:
        await client.producer(TOPIC, access_mode=ProducerAccessMode.EXCLUSIVE)
    assert refusal.value.code == ServerError.PRODUCER_FENCED


@played()
async def test_closing_waits_for_the_receipts(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    sent = [producer.send_nowait(b"%d" % i) for i in range(5)]
    await producer.close()
    assert all(future.done() and future.exception() is None for future in sent)


@played()
async def test_a_metadata_disk_that_refuses_costs_one_answer(world: World) -> None:
    client = await world.connect()
    old = await client.producer(TOPIC)
    world.store.fail_next(StorageError("the metadata's disk is full", retryable=True))
    with pytest.raises(RefusedError, match="is full") as refusal:
        await client.producer(f"{TOPIC}-new")
    assert refusal.value.code == ServerError.PERSISTENCE_ERROR
    assert await old.send(b"as ever")
    assert await (await client.producer(f"{TOPIC}-new")).send(b"on the second try")


DEDUPLICATED = {"brokerDeduplicationEnabled": "true"}


@played(settings=DEDUPLICATED)
async def test_the_last_sequence_id_lasts_over_unload_and_restart(world: World) -> None:
    client = await world.connect()
    await client.subscribe(TOPIC, "s")
    producer = await client.producer(TOPIC, name="p")
    assert producer.last_sequence_id == -1
    for _ in range(3):
        await producer.send(b"x")
    await producer.close()
    assert (await client.producer(TOPIC, name="other")).last_sequence_id == -1
    await world.broker.registry.unload(parse_topic(TOPIC))
    assert (await client.producer(TOPIC, name="p")).last_sequence_id == 2
    world.crash()
    await world.start()
    again = await (await world.connect()).producer(TOPIC, name="p")
    assert again.last_sequence_id == 2
    assert await again.send(b"x") == Position(-1, -1)


@played(settings=DEDUPLICATED)
async def test_the_last_sequence_id_includes_what_was_on_its_way_to_the_disk(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC, name="p")
    world.lanes[0].freeze()
    producer.send_nowait(b"x")
    await asyncio.sleep(0.5)
    client.transport.abort()
    await asyncio.sleep(0.5)
    again = asyncio.ensure_future((await world.connect()).producer(TOPIC, name="p"))
    await asyncio.sleep(0.5)
    assert not again.done()
    world.lanes[0].thaw()
    assert (await again).last_sequence_id == 0


@played()
async def test_without_deduplication_no_last_sequence_id_is_known(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC, name="p")
    await producer.send(b"x")
    await producer.close()
    assert (await client.producer(TOPIC, name="p")).last_sequence_id == -1
