"""An attempt to connect a producer leaves nothing behind, however it ends."""

from __future__ import annotations

import asyncio
import struct
from typing import Any

import pytest

from headgate.base.names import parse_topic
from headgate.base.work_units import CLIENT_CLOSED, SLICE_UNITS
from headgate.broker.connection.connection import Connection
from headgate.broker.connection.producer_attempt import ProducerAttempt
from headgate.testing import RefusedError, World
from headgate.wire import client as frames
from headgate.wire.codes import ProducerAccessMode, SchemaType, ServerError
from headgate.wire.messages import Schema
from tests.unit.broker.connection.iterations import Iterations
from tests.unit.broker.playing import TOPIC, played

WAIT = ProducerAccessMode.WAIT_FOR_EXCLUSIVE


@played()
async def test_an_attempt_that_waits_is_described_and_then_forgotten(world: World) -> None:
    client, other = await world.connect(), await world.connect()
    first = await client.producer(TOPIC, access_mode=ProducerAccessMode.EXCLUSIVE)
    waiting = asyncio.create_task(other.producer(TOPIC, access_mode=WAIT))
    await asyncio.sleep(1)
    connection = next(c for c in world.broker.connections if c.creating)
    (attempt,) = connection.creating.values()
    assert isinstance(attempt, ProducerAttempt)
    assert attempt.is_wanted
    assert attempt.brought_epoch is None
    described_bytes = connection.held_memory(is_scarce=False)
    assert described_bytes == connection.held_memory(is_scarce=True)
    assert attempt.key in connection.described_bytes
    await first.close()
    await waiting
    assert not connection.creating
    assert not attempt.is_wanted
    attempt.end()  # changes nothing: the producer is connected
    topic = world.broker.engine.topics[TOPIC]
    assert topic.access is not None
    assert topic.access.holder is attempt.producer


LARGE = b"x" * 60_000
UNKNOWN_FIELD = b"\xfa\x3f\xe0\xd4\x03" + LARGE
"""A field of the command that the protocol does not have."""


@played()
async def test_one_that_waits_keeps_neither_its_schema_nor_unknown_parts(world: World) -> None:
    """Nobody is charged with them: a connection with 8,000 that waited, each with a schema of 120
    KB, took a gigabyte."""
    schema = Schema(name="R", type=SchemaType.AVRO)
    schema.schema_data = b'{"type":"record","name":"R","fields":[],"doc":"%s"}' % LARGE
    client, other = await world.connect(), await world.connect()
    first = await client.producer(TOPIC, access_mode=ProducerAccessMode.EXCLUSIVE, schema=schema)
    frame = frames.producer(1, 5, TOPIC, name="w", access_mode=WAIT, schema=schema)
    encoded = frame[8:] + UNKNOWN_FIELD
    other.write(struct.pack(">II", len(encoded) + 4, len(encoded)) + encoded)
    await asyncio.sleep(1)
    topic = world.broker.engine.topics[TOPIC]
    assert topic.access is not None
    (attempt,) = topic.access.waiters
    assert isinstance(attempt, ProducerAttempt)
    assert attempt.command.ByteSize() < 200
    await first.close()
    await asyncio.sleep(1)
    assert topic.producers["w"] is attempt.producer
    answers = [
        each.producer_success for each in other.unexpected if each.HasField("producer_success")
    ]
    assert [answer.producer_ready for answer in answers] == [False, True]
    assert answers[1].schema_version == b"\0" * 8


@played()
async def test_a_client_that_closes_while_its_epoch_is_stored(world: World) -> None:
    client = await world.connect()
    await (await client.producer(TOPIC)).close()
    world.lanes[2].freeze()  # that of the metadata
    other = await world.connect()
    other.write(frames.producer(1, 5, TOPIC, access_mode=ProducerAccessMode.EXCLUSIVE_WITH_FENCING))
    await asyncio.sleep(1)
    topic = world.broker.engine.topics[TOPIC]
    assert topic.access is not None
    assert topic.access.holder is not None
    with pytest.raises(RefusedError) as refused:
        await client.producer(TOPIC)
    assert refused.value.code == ServerError.PRODUCER_BUSY
    await other.request(lambda i: frames.close_producer(i, 5))
    assert topic.access.is_idle
    world.lanes[2].thaw()
    await asyncio.sleep(1)
    assert not topic.producers
    assert await (await client.producer(TOPIC)).send(b"free again")


@played()
async def test_many_that_wait_end_with_their_connections(world: World) -> None:
    client, other = await world.connect(), await world.connect()
    first = await client.producer(TOPIC, access_mode=ProducerAccessMode.EXCLUSIVE)
    for number in range(1_500):
        other.write(frames.producer(number, number, TOPIC, access_mode=WAIT))
    await asyncio.sleep(5)
    topic = world.broker.engine.topics[TOPIC]
    assert topic.access is not None
    assert topic.access.waiting_count == 1_500
    assert await (await client.producer(f"{TOPIC}-2")).send(b"others go on")
    other.abort()
    await asyncio.sleep(5)
    assert topic.access.waiting_count == 0
    await first.close()
    assert topic.access.is_idle


COUNT = 4 * SLICE_UNITS // CLIENT_CLOSED


async def crowd_that_waits(world: World) -> tuple[Connection, Iterations]:
    """A connection with very many producers that wait for exclusive access, and in which turn of
    the loop each of them ended, from now on."""
    client, other = await world.connect(), await world.connect()
    await client.producer(TOPIC, access_mode=ProducerAccessMode.EXCLUSIVE)
    for number in range(COUNT):
        other.write(frames.producer(number, number, TOPIC, access_mode=WAIT))
    await asyncio.sleep(5)
    ended, end = Iterations(COUNT), ProducerAttempt.end

    def noted(attempt: ProducerAttempt) -> None:
        ended.note()
        end(attempt)

    ended.begin()
    ProducerAttempt.end = noted  # type: ignore[method-assign]
    return next(c for c in world.broker.connections if c.creating), ended


@pytest.fixture(autouse=True)
def _real_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProducerAttempt, "end", ProducerAttempt.end)


@played()
async def test_very_many_that_wait_are_refused_in_slices_when_their_topic_is_unloaded(
    world: World,
) -> None:
    """99,000 on ten connections held the event loop for 0.8 s."""
    _, ended = await crowd_that_waits(world)
    await world.broker.registry.unload(parse_topic(TOPIC))
    await asyncio.sleep(1)
    assert len(ended.noted) == COUNT
    assert ended.most() <= SLICE_UNITS // CLIENT_CLOSED


@played()
async def test_very_many_whose_connection_ends_end_in_slices_and_begin_nothing(
    world: World,
) -> None:
    """That their holder left with them gave the access to each in turn: 0.5 s."""
    connection, ended = await crowd_that_waits(world)
    begun: list[Any] = []
    run_waiting = connection.run_waiting

    def noted(coroutine: Any, command: Any) -> None:
        begun.append(command)
        run_waiting(coroutine, command)

    connection.run_waiting = noted  # type: ignore[method-assign]
    topic = world.broker.engine.topics[TOPIC]
    for each in list(world.broker.connections):
        each.abort()
    await asyncio.sleep(5)
    assert len(ended.noted) - len(begun) == COUNT
    assert ended.most() <= SLICE_UNITS // CLIENT_CLOSED + 1
    assert len(begun) <= 1, "that of the one that was first when its holder left"
    assert topic.access is not None
    assert topic.access.is_idle


@played()
async def test_those_that_wait_count_as_work_where_their_memory_is_measured(world: World) -> None:
    """They counted as nothing: ten connections with 9,900 each were one turn of 50 ms a second."""
    connection, _ = await crowd_that_waits(world)
    assert connection.objects_count == COUNT
