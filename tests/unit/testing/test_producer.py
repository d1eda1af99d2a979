"""The producer of the kit against a whole broker."""

from __future__ import annotations

import asyncio

import pytest

from headgate.base.errors import StorageError
from headgate.base.names import parse_topic
from headgate.facade.admin_facade import AdminFacade
from headgate.testing import ConnectionLostError, RefusedError, World
from headgate.wire.codes import ServerError
from tests.unit.broker.playing import TOPIC, played


@played()
async def test_receipts_come_in_the_order_of_the_sends(world: World) -> None:
    producer = await (await world.connect()).producer(TOPIC)
    told: list[int] = []
    for number in range(20):
        receipt = producer.send_nowait(b"%d" % number)
        receipt.add_done_callback(lambda _, number=number: told.append(number))
    last = await producer.send(b"last")
    assert told == list(range(20))
    assert last.entry_id == 20
    assert producer.sequence_id == 20


@played()
async def test_a_batch_is_one_entry_of_several_messages(world: World) -> None:
    client = await world.connect()
    consumer = await client.subscribe(TOPIC, "s")
    producer = await client.producer(TOPIC, name="p")
    await producer.send(b"", batch=[b"one", b"two"])
    received = await consumer.receive()
    assert received.payloads == (b"one", b"two")
    assert received.producer_name == "p"
    assert 0 <= world.wall_ms() - received.publish_time_ms < 100


@played()
async def test_a_refused_send_says_why(world: World) -> None:
    producer = await (await world.connect()).producer(TOPIC)
    world.lanes[0].fail_next(StorageError("broken", retryable=False))
    with pytest.raises(RefusedError, match="broken") as refusal:
        await producer.send(b"x")
    assert refusal.value.code == ServerError.PERSISTENCE_ERROR


@played()
async def test_the_broker_may_close_it(world: World) -> None:
    producer = await (await world.connect()).producer(TOPIC)
    facade = AdminFacade(world.broker, world.observer)
    await world.ask(facade.unload_topic(parse_topic(TOPIC)))
    await asyncio.sleep(0.1)
    assert not producer.is_open
    with pytest.raises(ConnectionLostError):
        producer.send_nowait(b"x")


@played()
async def test_closing_waits_for_what_was_sent(world: World) -> None:
    producer = await (await world.connect()).producer(TOPIC)
    receipt = producer.send_nowait(b"x")
    await producer.close()
    assert receipt.result().entry_id == 0
