"""Authorization: which commands ask for which operation, and what a refusal looks like."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from headgate.base.identity import NOBODY, Identity
from headgate.base.names import parse_topic
from headgate.base.positions import EARLIEST
from headgate.broker.authorization import DEMANDS, AllowAll, authorizer_of
from headgate.facade.admin_facade import AdminFacade
from headgate.metadata.catalog import Catalog
from headgate.metadata.errors import RefusalError
from headgate.policy.settings import Settings
from headgate.testing import RefusedError, SimConsumer, World
from headgate.wire import client as frames
from headgate.wire.codes import CommandType, SchemaType, ServerError
from headgate.wire.commands import COMMANDS
from headgate.wire.messages import Schema
from tests.unit.broker.playing import TOPIC, played
from tests.unit.denying import Deny

NO_PERMISSION_NEEDED = {
    # The role stays the one for which CONNECT was allowed.
    CommandType.AUTH_RESPONSE,
    CommandType.PING,
    CommandType.PONG,
    # About a producer or consumer of this connection: allowed when that was made.
    CommandType.SEND,
    CommandType.CLOSE_PRODUCER,
    CommandType.FLOW,
    CommandType.ACK,
    CommandType.REDELIVER_UNACKNOWLEDGED_MESSAGES,
    CommandType.CLOSE_CONSUMER,
    # About a watcher of this connection.
    CommandType.WATCH_TOPIC_LIST_CLOSE,
}

SUBSCRIPTIONS = {
    CommandType.SUBSCRIBE: "other",
    CommandType.GET_LAST_MESSAGE_ID: "s",
    CommandType.UNSUBSCRIBE: "s",
    CommandType.SEEK: "s",
    CommandType.CONSUMER_STATS: "s",
}
"""The subscription that each of the requests concerns, where it concerns one."""


def requests(consumer: SimConsumer) -> dict[CommandType, Callable[[int], bytes]]:
    """One request of each kind that is asked about, but for CONNECT."""
    own = consumer.consumer_id
    return {
        CommandType.PARTITIONED_METADATA: lambda i: frames.partitioned_metadata(i, "orders"),
        CommandType.LOOKUP: lambda i: frames.lookup(i, "orders"),
        CommandType.GET_TOPICS_OF_NAMESPACE: lambda i: frames.get_topics_of_namespace(
            i, "public/default"
        ),
        CommandType.WATCH_TOPIC_LIST: lambda i: frames.watch_topic_list(
            i, 92, "public/default", "x"
        ),
        CommandType.GET_SCHEMA: lambda i: frames.get_schema(i, "orders"),
        CommandType.GET_OR_CREATE_SCHEMA: lambda i: frames.get_or_create_schema(
            i, "orders", Schema(name="", type=SchemaType.STRING, schema_data=b"")
        ),
        CommandType.PRODUCER: lambda i: frames.producer(i, 90, "orders"),
        CommandType.SUBSCRIBE: lambda i: frames.subscribe(i, 91, "orders", "other"),
        CommandType.GET_LAST_MESSAGE_ID: lambda i: frames.get_last_message_id(i, own),
        CommandType.CONSUMER_STATS: lambda i: frames.consumer_stats(i, own),
        CommandType.UNSUBSCRIBE: lambda i: frames.unsubscribe(i, own),
        CommandType.SEEK: lambda i: frames.seek(i, own, position=EARLIEST),
    }


def test_without_authentication_everybody_may_do_everything() -> None:
    assert isinstance(authorizer_of(Catalog("c", {}), Settings()), AllowAll)
    assert AllowAll().decide(NOBODY, "topic.produce", TOPIC, "").allowed


def test_every_command_that_is_built_is_asked_about_or_follows_from_one_that_is() -> None:
    assert set(DEMANDS) | NO_PERMISSION_NEEDED == {
        kind for kind, facts in COMMANDS.items() if facts.built
    }
    assert not set(DEMANDS) & NO_PERMISSION_NEEDED


@played()
async def test_every_command_is_refused_by_the_operation_of_the_table(world: World) -> None:
    client = await world.connect()
    consumer = await client.subscribe(TOPIC, "s")
    world.broker.authorizer = deny = Deny()
    made = requests(consumer)
    assert set(made) == set(DEMANDS) - {CommandType.CONNECT}
    for kind, make in made.items():
        deny.asked.clear()
        with pytest.raises(RefusedError, match="not authorized") as refusal:
            await client.request(make)
        assert refusal.value.code == ServerError.AUTHORIZATION_ERROR, kind
        namespace = kind in (CommandType.GET_TOPICS_OF_NAMESPACE, CommandType.WATCH_TOPIC_LIST)
        resource = "public/default" if namespace else TOPIC
        subscription = SUBSCRIPTIONS.get(kind, "")
        assert deny.asked == [("", COMMANDS[kind].operation, resource, subscription)]
    assert client.is_open
    assert world.broker.counts.unauthorized == len(made)
    assert list(world.broker.engine.topics[TOPIC].subscriptions) == ["s"]


@played()
async def test_what_follows_from_an_allowed_command_is_not_asked_about(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    consumer = await client.subscribe(TOPIC, "s", queue_size=0)
    world.broker.authorizer = deny = Deny()
    position = await producer.send(b"x")
    consumer.flow(1)
    assert (await consumer.receive()).position == position
    await consumer.ack(position)
    consumer.redeliver()
    await consumer.close()
    await producer.close()
    assert deny.asked == []


@played()
async def test_a_refused_connection_gets_an_error_and_ends(world: World) -> None:
    world.broker.authorizer = deny = Deny()
    with pytest.raises(RefusedError, match="not authorized to connect") as refusal:
        await world.connect()
    assert refusal.value.code == ServerError.AUTHORIZATION_ERROR
    assert deny.asked == [("", "connection.open", "", "")]
    await asyncio.sleep(1)
    assert not world.broker.connections


@played()
async def test_a_refusal_creates_nothing_and_costs_nothing_else(world: World) -> None:
    client = await world.connect()
    world.broker.authorizer = Deny()
    for attempt in (client.producer(TOPIC), client.subscribe(TOPIC, "s")):
        with pytest.raises(RefusedError, match="not authorized"):
            await attempt
    assert not world.broker.registry.exists(parse_topic(TOPIC))
    assert client.is_open


@played()
async def test_the_admin_api_asks_the_same_authorizer(world: World) -> None:
    facade = AdminFacade(world.broker, world.observer)
    facade.check_allowed(NOBODY, "tenant.list", "")
    world.broker.authorizer = deny = Deny()
    with pytest.raises(RefusalError, match="Unauthorized") as refusal:
        facade.check_allowed(Identity("r"), "topic.read", TOPIC, "s")
    assert refusal.value.status == 401
    assert deny.asked == [("r", "topic.read", TOPIC, "s")]
    assert facade.decide(Identity("r"), "topic.read", TOPIC).reason == "this test allows nothing"
