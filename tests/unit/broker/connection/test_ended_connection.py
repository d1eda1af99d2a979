"""However a connection ends, reference counts free all of it: the collector has nothing to find."""

from __future__ import annotations

import asyncio
import gc
import logging
import weakref
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

import pytest

from headgate.base.errors import HeadgateError
from headgate.broker.connection.ended_connection import ENDED, IGNORE, no_bytes
from headgate.security.errors import CredentialsError
from headgate.security.provider import Credentials, Principal
from headgate.testing import SimClient, World
from headgate.wire import client as frames
from headgate.wire.codes import ProducerAccessMode, SubscriptionType
from headgate.wire.messages import BaseCommand
from tests.unit.broker.playing import TOPIC
from tests.unit.security.made_tokens import token_of, token_provider

Story = Callable[[World, SimClient], Awaitable[None]]

SETTINGS = {
    "brokerDeleteInactiveTopicsEnabled": "false",  # topics that end are cycles
    "maxPublishRatePerTopicInMessages": "5",
    "enableBrokerSideSubscriptionPatternEvaluation": "true",
}
LATE_S = 120
"""After so long nothing of a connection is under way: keep-alive and time-outs are over."""


async def _busy(_: World, client: SimClient) -> None:
    """Producers and consumers with messages that are not acknowledged, and waiting SENDs."""
    await client.connect()
    producer = await client.producer(TOPIC)
    consumer = await client.subscribe(TOPIC, "s", kind=SubscriptionType.SHARED)
    await client.subscribe(f"{TOPIC}-other", "s")
    for number in range(20):
        producer.send_nowait(b"%d" % number)
    await consumer.ack((await consumer.receive()).position)


async def _nothing(_: World, __: SimClient) -> None:
    """Not even a CONNECT."""


async def _refused(_: World, client: SimClient) -> None:
    await client.connect()
    for make in (
        lambda i: frames.producer(i, 1, "no topic"),
        lambda i: frames.subscribe(i, 1, TOPIC, ""),
        lambda i: frames.get_schema(i, TOPIC),
        lambda i: frames.seek(i, 7, publish_time_ms=1),
    ):
        with suppress(HeadgateError):
            await client.request(make)


async def _waiting(_: World, client: SimClient) -> None:
    """Commands without an answer: for exclusive access, and what comes at the same instant."""
    await client.connect()
    await client.producer(TOPIC, access_mode=ProducerAccessMode.EXCLUSIVE)
    mode = ProducerAccessMode.WAIT_FOR_EXCLUSIVE
    client.write(frames.producer(90, 90, TOPIC, access_mode=mode))
    await asyncio.sleep(1)
    client.write(frames.subscribe(91, 91, f"{TOPIC}-new", "s"))
    client.write(frames.unsubscribe(92, 91))
    client.write(frames.lookup(93, TOPIC))


async def _watching(_: World, client: SimClient) -> None:
    await client.connect()
    client.write(frames.watch_topic_list(1, 1, "public/default", ".*"))
    await asyncio.sleep(1)
    await client.producer(f"{TOPIC}-seen")


async def _breaking(_: World, client: SimClient) -> None:
    await client.connect()
    await client.producer(TOPIC)
    client.write(b"\xff" * 40)
    await asyncio.sleep(1)


STORIES = [_busy, _nothing, _refused, _waiting, _watching, _breaking]
ENDS: dict[str, Callable[[SimClient], None]] = {
    "closed": SimClient.close,
    "reset": SimClient.abort,
    "silent": lambda client: client.transport.silence(),  # type: ignore[attr-defined]
}


@pytest.fixture(autouse=True)
def no_records() -> Iterator[None]:
    """pytest keeps log records, some with errors, whose tracebacks lead to the connection."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


@contextmanager
def without_collector() -> Iterator[list[Any]]:
    """What the collector finds, and did not free, is in the list at the end."""
    found: list[Any] = []
    gc.collect()
    gc.disable()
    try:
        yield found
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        found += gc.garbage
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


def ends_without_cycles(world: World, story: Story, end: Callable[[SimClient], None]) -> None:
    ends: list[weakref.ref[object]] = []

    async def whole() -> None:
        await world.start()
        client = world.open_connection()
        ends.extend(weakref.ref(each) for each in world.broker.connections)
        assert len(ends) == 1
        with suppress(HeadgateError):
            await story(world, client)
        end(client)
        await asyncio.sleep(LATE_S)
        world.clients.clear()

    with without_collector() as found:
        world.run(whole())
        assert [each() for each in ends] == [None]
    assert _of_the_broker(found) <= {"headgate.base.positions"}, "of a client"


def _of_the_broker(found: list[Any]) -> set[str]:
    """Modules of the broker whose objects and frames are among them."""
    modules = {type(each).__module__ for each in found}
    modules |= {each.f_globals["__name__"] for each in found if isinstance(each, FrameType)}
    of_clients = ("headgate.testing", "headgate.wire")
    return {
        name for name in modules if name.startswith("headgate") and not name.startswith(of_clients)
    }


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_no_cycle_is_left(story: Story, end: Callable[[SimClient], None]) -> None:
    with World(1, settings=SETTINGS) as world:
        ends_without_cycles(world, story, end)


@pytest.mark.parametrize("token", [b"", b"wrong", token_of("app")])
def test_clients_that_are_authenticated_or_refused(token: bytes) -> None:
    async def story(_: World, client: SimClient) -> None:
        await client.connect(auth_method="token", auth_data=token)

    settings = {"authenticationEnabled": "true", "authenticationProviders": "token"}
    with World(1, settings=settings, providers=[token_provider()]) as world:
        ends_without_cycles(world, story, SimClient.close)


class SlowRefusal:
    """Refuses every client, but not at once."""

    method = "slow"

    async def _refuse(self) -> Principal:
        await asyncio.sleep(1)
        raise CredentialsError("wrong")

    def principal(self, _: Credentials, __: float) -> Awaitable[Principal]:
        return asyncio.get_running_loop().create_task(self._refuse())


def test_clients_that_are_refused_later() -> None:
    async def story(_: World, client: SimClient) -> None:
        await client.connect(auth_method="slow", auth_data=b"x")

    with World(1, settings={"authenticationEnabled": "true"}, providers=[SlowRefusal()]) as world:
        ends_without_cycles(world, story, SimClient.close)


def test_a_part_that_lives_on_may_ask_an_ended_connection_for_anything() -> None:
    async def late() -> None:
        """Never runs."""

    assert not ENDED.is_open
    assert not ENDED.producers
    assert not ENDED.creating
    assert ENDED.peer is None
    ENDED.write(b"frame")
    ENDED.close_at_client(b"frame")
    ENDED.run_in_slices(iter((1,)))
    ENDED.run_waiting(late(), BaseCommand())
    for call in (ENDED.pause_reading, ENDED.resume, ENDED.resume_soon, ENDED.close, ENDED.abort):
        call()
    assert ENDED.refuse(BaseCommand(), HeadgateError())
    assert not ENDED.forget_producer(1)
    assert (ENDED.unsent_bytes(), no_bytes(), ENDED.objects_count) == (0, 0, 0)
    assert not asyncio.run(ENDED.is_alive())  # type: ignore[arg-type]
    IGNORE(1, 2)
