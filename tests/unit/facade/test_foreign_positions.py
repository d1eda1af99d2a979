"""A message id is resolved only within the topic that the request names (CVE-2021-41571)."""

from __future__ import annotations

import asyncio

import pytest

from headgate.base.names import parse_topic
from headgate.base.positions import EARLIEST, Position
from headgate.facade.admin_facade import AdminFacade
from headgate.facade.protocol import AtPosition
from headgate.metadata.errors import RefusalError
from headgate.testing import RefusedError, SimClient, World
from headgate.wire import client as frames
from tests.unit.broker.playing import played

OWN, FOREIGN = "persistent://public/default/own", "persistent://public/default/foreign"
NAME = parse_topic(OWN)
SECRET = b"of another tenant"


async def story(world: World) -> tuple[AdminFacade, list[Position]]:
    """Two topics with messages between each other; returns the ids of the foreign ones."""
    client = await world.connect()
    own, foreign = await client.producer(OWN), await client.producer(FOREIGN)
    ids = []
    for number in range(4):
        await own.send(b"own %d" % number)
        ids.append(await foreign.send(SECRET))
    # Also an open ledger, a closed one, and numbers that no topic has.
    ids += [Position(at.ledger_id, at.entry_id + 3) for at in ids]
    ids += [Position(ids[0].ledger_id, -1), Position(-1, 0), Position(1 << 62, 0)]
    return AdminFacade(world.broker, world.observer), ids


@played()
async def test_no_entry_of_another_topic_is_read(world: World) -> None:
    facade, ids = await story(world)
    for position in ids:
        with pytest.raises(RefusalError) as refusal:
            await facade.entry(NAME, position)
        assert refusal.value.status in (404, 412), position


@played()
async def test_a_cursor_that_is_set_to_a_foreign_id_stays_in_its_topic(world: World) -> None:
    facade, ids = await story(world)
    await facade.create_subscription(NAME, "s", AtPosition(EARLIEST), {})
    client = await world.connect()
    for position in ids:
        try:
            await facade.reset_cursor(NAME, "s", AtPosition(position))
        except RefusalError:
            continue
        await _reads_its_own(client)
    for position in ids:
        consumer = await client.subscribe(OWN, "s")
        try:
            await client.request(
                lambda number, at=position, on=consumer: frames.seek(
                    number, on.consumer_id, position=at
                )
            )
        except RefusedError:
            await consumer.close()
            continue
        await _reads_its_own(client)


async def _reads_its_own(client: SimClient) -> None:
    consumer = await client.subscribe(OWN, "s")
    await asyncio.sleep(0.1)
    assert all(each.payload.startswith(b"own") for each in consumer.queue)
    await consumer.close()


@played()
async def test_a_reader_that_starts_at_a_foreign_id_reads_its_own_topic(world: World) -> None:
    _, ids = await story(world)
    client = await world.connect()
    for number, position in enumerate(ids):
        try:
            consumer = await client.subscribe(
                OWN, f"reader-{number}", durable=False, start=position
            )
        except RefusedError:
            continue
        await asyncio.sleep(0.1)
        assert all(each.payload.startswith(b"own") for each in consumer.queue), position
        await consumer.close()


@played()
async def test_an_acknowledgement_of_a_foreign_id_changes_nothing_there(world: World) -> None:
    _, ids = await story(world)
    client = await world.connect()
    own = await client.subscribe(OWN, "s")
    await client.subscribe(FOREIGN, "s")
    client.write(frames.ack(own.consumer_id, ids))
    await asyncio.sleep(1)
    topics = world.broker.engine.topics
    assert topics[FOREIGN].subscriptions["s"].backlog_entries == 4
    assert client.is_open
