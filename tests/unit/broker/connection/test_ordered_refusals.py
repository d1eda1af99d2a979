"""SENDs that break a topic's rules are refused, each in its turn; others go on."""

from __future__ import annotations

import asyncio

import pytest

from headgate.base.names import parse_topic
from headgate.broker.connection.ordered_refusals import DEFERRED_BYTES, REFUSAL_BYTES
from headgate.testing import RefusedError, SimProducer, World
from headgate.wire.codes import ServerError
from headgate.wire.entry import build_entry
from headgate.wire.messages import MessageMetadata
from tests.unit.broker.playing import TOPIC, played

NAME = parse_topic(TOPIC)


async def require_encryption(world: World, *, required: bool = True) -> None:
    plan = world.broker.catalog.plan_namespace_policies
    change = plan(NAME.namespace, encryption_required=required)
    await world.ask(world.broker.commit(change))


def entry(producer: SimProducer, size: int, *, encrypted: bool) -> bytes:
    metadata = MessageMetadata(producer_name=producer.name, sequence_id=0, publish_time=1)
    if encrypted:
        metadata.encryption_keys.add(key="k", value=b"v")
    return build_entry(metadata, b"x" * size)


@played()
async def test_refusals_that_wait_are_charged(world: World) -> None:
    """10,000 of each connection waited for as long as a limit kept one SEND before them."""
    producer = await (await world.connect()).producer(TOPIC)
    (server,) = world.broker.connections
    (waiting, _) = server.producers[producer.producer_id]
    waiting.pending_count += 1
    before = server.held_memory(is_scarce=False).descriptions
    for sequence_id in range(3):
        server.producer_port.refusals.refuse(
            waiting, sequence_id, ServerError.NOT_ALLOWED_ERROR, "too late"
        )
    taken = server.held_memory(is_scarce=False).descriptions - before
    assert taken == 3 * REFUSAL_BYTES + DEFERRED_BYTES
    server.producer_port.refusals.send_answered(producer.producer_id)
    assert server.held_memory(is_scarce=False).descriptions == before
    waiting.pending_count -= 1


@played()
async def test_only_encrypted_messages_are_taken_where_that_is_required(world: World) -> None:
    client = await world.connect()
    before, encrypting = await client.producer(TOPIC), await client.producer(TOPIC, encrypted=True)
    sent = before.send_nowait(b"before")
    await asyncio.sleep(0.1)
    await require_encryption(world)
    await asyncio.sleep(0.1)
    assert await sent
    assert (before.is_open, encrypting.is_open) == (False, True)
    with pytest.raises(RefusedError, match="Encryption is required in") as refused:
        await client.producer(TOPIC)
    assert refused.value.code == ServerError.METADATA_ERROR
    told: list[int] = []
    found = []
    for number, encrypted in enumerate((True, False, True, True, False)):
        body = entry(encrypting, 10, encrypted=encrypted)
        future = encrypting.send_entry_nowait(number, body)
        future.add_done_callback(lambda _, n=number: told.append(n))
        found.append(future)
    ends = await asyncio.gather(*found, return_exceptions=True)
    assert told == [0, 1, 2, 3, 4]  # each in its turn
    codes = [end.code if isinstance(end, RefusedError) else None for end in ends]
    assert codes == [None, ServerError.METADATA_ERROR, None, None, ServerError.METADATA_ERROR]
    assert client.is_open
    await require_encryption(world, required=False)
    assert await (await client.producer(TOPIC)).send(b"plain")


@played(settings={"encryptionRequireOnProducer": "true"})
async def test_a_setting_requires_it_on_all_topics(world: World) -> None:
    client = await world.connect()
    with pytest.raises(RefusedError, match="Encryption is required"):
        await client.producer(TOPIC)
    producer = await client.producer(TOPIC, encrypted=True)
    assert await producer.send_entry_nowait(0, entry(producer, 10, encrypted=True))


@played()
async def test_a_topic_may_take_smaller_messages_only_but_for_chunks(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    change = world.broker.catalog.plan_topic_policies(NAME, max_message_size=1_000)
    await world.ask(world.broker.commit(change))
    await asyncio.sleep(0.1)
    assert await producer.send(b"small")
    with pytest.raises(RefusedError, match="Exceed maximum message size") as refused:
        await producer.send(b"x" * 1_000)
    assert refused.value.code == ServerError.NOT_ALLOWED_ERROR
    body = entry(producer, 2_000, encrypted=False)
    assert await producer.send_entry_nowait(7, body, is_chunk=True)
    assert await producer.send(b"small")
