"""A peer is checked at intervals, and when another client needs a name that it holds."""

from __future__ import annotations

import asyncio
import logging

import pytest

from headgate.base.bounded_lines import ROLE_LINES_PER_MINUTE
from headgate.base.names import parse_topic
from headgate.base.work_units import COLD, SLICE_UNITS
from headgate.broker.connection.bounds import HANDSHAKE_TIMEOUT_S, LIVENESS_TIMEOUT_S
from headgate.broker.connection.connection import Connection
from headgate.metadata.policies import BacklogQuota
from headgate.testing import SimClient, World
from tests.unit.broker.connection.iterations import Iterations
from tests.unit.broker.playing import TOPIC, played

QUICK = {"keepAliveIntervalSeconds": "5"}


def server_side(world: World) -> Connection:
    """The broker's side of the only connection."""
    (connection,) = world.broker.connections
    return connection


async def connected(world: World) -> tuple[SimClient, Connection]:
    client = await world.connect()
    return client, server_side(world)


@played()
async def test_a_peer_without_connect_is_cut_off(world: World) -> None:
    client = world.open_connection()
    await asyncio.sleep(HANDSHAKE_TIMEOUT_S - 0.1)
    assert client.is_open
    await asyncio.sleep(0.3)
    assert not client.is_open


@played(settings=QUICK)
async def test_a_silent_peer_has_one_interval_after_the_ping(world: World) -> None:
    client, _ = await connected(world)
    client.answers_pings = False
    await asyncio.sleep(9.9)  # the first interval heard CONNECT, the second nothing
    assert client.is_open
    await asyncio.sleep(5.3)
    assert not client.is_open


def test_very_many_silent_peers_do_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="headgate.connection")

    @played(settings=QUICK)
    async def story(world: World) -> None:
        for _ in range(ROLE_LINES_PER_MINUTE + 5):
            (await world.connect()).answers_pings = False
        await asyncio.sleep(20)

    story()
    assert sum("is silent" in text for text in caplog.messages) == ROLE_LINES_PER_MINUTE


@played(settings=QUICK)
async def test_any_sign_of_life_counts(world: World) -> None:
    client, _ = await connected(world)
    client.answers_pings = False
    producer = await client.producer(TOPIC)
    for _ in range(12):
        await asyncio.sleep(4)
        await producer.send(b"x")
    assert client.is_open


@played(settings=QUICK)
async def test_a_peer_that_is_not_read_may_be_silent(world: World) -> None:
    """What is paused for others' sake is not cut off for its silence."""
    client, server = await connected(world)
    server.pause_reading()
    await asyncio.sleep(60)
    assert client.is_open
    assert await server.keep_alive.is_alive()  # nobody could answer: it counts as there


@played()
async def test_asked_for_life_a_peer_answers(world: World) -> None:
    client, server = await connected(world)
    assert await server.keep_alive.is_alive()
    assert client.is_open


@played()
async def test_asked_for_life_a_dead_peer_is_cut_off(world: World) -> None:
    client, server = await connected(world)
    client.answers_pings = False
    before_s = world.now_s
    first, second = await asyncio.gather(server.keep_alive.is_alive(), server.keep_alive.is_alive())
    assert (first, second) == (False, False)
    assert abs(world.now_s - before_s - LIVENESS_TIMEOUT_S) < 0.5
    await asyncio.sleep(0.1)
    assert not client.is_open
    assert not await server.keep_alive.is_alive()


@played()
async def test_a_peer_that_leaves_during_the_check_is_not_alive(world: World) -> None:
    client, server = await connected(world)
    client.answers_pings = False
    asked = asyncio.ensure_future(server.keep_alive.is_alive())
    await asyncio.sleep(1)
    before_s = world.now_s
    client.abort()
    assert not await asked
    assert world.now_s - before_s < 1


@played(settings=QUICK)
async def test_nothing_is_left_of_a_connection_that_ended(world: World) -> None:
    client, server = await connected(world)
    client.close()
    await asyncio.sleep(30)
    assert not world.broker.connections
    assert not server.is_open
    timer = server.keep_alive._timer
    assert timer is not None
    assert timer.cancelled()


@played(settings={"keepAliveIntervalSeconds": "30", "headgateHoldParkMs": "300000"})
async def test_held_producers_keep_their_connection(world: World) -> None:
    """Rule 4.3: a hold may be longer than the keep-alive; it pauses no socket, so that the peer is
    asked and answers, and acknowledgements come through."""
    name = parse_topic(TOPIC)
    await world.broker.registry.get_or_create(name, create=True)
    quotas = {"destination_storage": BacklogQuota("producer_request_hold", limit_size=10)}
    change = world.broker.catalog.plan_topic_policies(name, backlog_quotas=quotas)
    await world.broker.writer.commit(change)
    client, server = await connected(world)
    consumer = await client.subscribe(TOPIC, "s")
    producer = await client.producer(TOPIC)
    await producer.send(b"x" * 100)
    waiting = [producer.send_nowait(b"y") for _ in range(100)]
    await asyncio.sleep(200)
    assert server.producer_port.parked_bytes > 0
    assert client.is_open
    assert not server.socket_paused
    assert not any(receipt.done() for receipt in waiting)
    for _ in range(101):
        message = await consumer.receive()
        consumer.ack_nowait(message.position)
    assert len({await receipt for receipt in waiting}) == 100


@played()
async def test_crowds_that_want_what_a_silent_peer_holds_go_on_in_slices(world: World) -> None:
    """31,000 consumers of one role went on in one turn of 0.9 s when the holder of their exclusive
    subscription showed a sign of life, and 60,000 in one of 1.7 s when it left."""
    holder, server = await connected(world)
    holder.answers_pings = False

    async def wanting(went_on: Iterations) -> None:
        assert await server.is_alive() is server.is_open
        went_on.note()

    for ends in (False, True):
        went_on = Iterations(1_000)
        tasks = [asyncio.create_task(wanting(went_on)) for _ in range(1_000)]
        await asyncio.sleep(LIVENESS_TIMEOUT_S / 2)
        went_on.begin()
        if ends:
            server.abort()
        else:
            server.keep_alive.pong()
        await asyncio.wait_for(asyncio.gather(*tasks), LIVENESS_TIMEOUT_S / 4)
        assert went_on.most() <= 2 * SLICE_UNITS // COLD
