"""PRODUCER and CLOSE_PRODUCER."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, cast

from headgate.base.errors import HeadgateError, invariant
from headgate.base.names import TopicName, check_subscription, parse_topic
from headgate.broker.commands.schemas import NO_VERSION, agree
from headgate.broker.connection_bounds import check_room
from headgate.broker.subscriptions import create_subscription
from headgate.engine.errors import NotAllowedError, ProducerBusyError, TopicFencedError
from headgate.engine.producer import Producer
from headgate.engine.topic import Topic
from headgate.engine.types import AccessMode
from headgate.wire import encode
from headgate.wire.codes import ProducerAccessMode
from headgate.wire.messages import BaseCommand, CommandProducer

if TYPE_CHECKING:
    from headgate.broker.connection import Connection
    from headgate.broker.service import Broker


async def create_producer(connection: Connection, command: BaseCommand) -> None:
    """Connect a producer; its topic is created if it does not exist."""
    request = command.producer
    producer_id = request.producer_id
    present = connection.producers.get(producer_id)
    if present is not None:
        topic_name = present[1].name
        version = await _schema_version(connection.broker, topic_name, request)
        _answer(connection, request.request_id, present[0], version)
        return
    key = ("producer", producer_id)
    if key in connection.creating:
        raise TopicFencedError("Producer is already present on the connection")
    check_room(connection, request)
    connection.creating[key] = request
    try:
        name = parse_topic(request.topic)
        _check(connection, request, name)
        broker = connection.broker
        topic = await broker.registry.get_or_create(name, create=True)
        version = await _schema_version(broker, name, request)
        if request.initial_subscription_name:
            await _initial_subscription(connection, topic, request.initial_subscription_name)
        producer = _make(connection, request)
        holder = topic.producers.get(producer.name)
        if holder is not None:
            await _take_over(connection, topic, holder, producer)
        broker.begin_turn()
        if not connection.is_open or connection.creating.get(key) is not request:
            return
        if topic.quota is not None and not topic.fenced:
            topic.quota.check_newcomer()
        broker.engine.disk_hold.check_newcomer(connection)
        topic.add_producer(producer)
        connection.producers[producer_id] = (producer, topic)
        _answer(connection, request.request_id, producer, version)
    finally:
        if connection.creating.get(key) is request:
            del connection.creating[key]


def _check(connection: Connection, request: CommandProducer, name: TopicName) -> None:
    """Refuse what is not built or not allowed, before anything is created for it."""
    broker = connection.broker
    if broker.registry.is_system(name):
        raise NotAllowedError(f"{name} belongs to the broker: only it may produce there")
    if request.initial_subscription_name:
        check_subscription(request.initial_subscription_name)
    if request.producer_access_mode not in (
        ProducerAccessMode.SHARED,
        ProducerAccessMode.EXCLUSIVE,
    ):
        mode = ProducerAccessMode(request.producer_access_mode).name
        raise NotAllowedError(f"Access mode {mode} is not supported: Shared and Exclusive are")


def _make(connection: Connection, request: CommandProducer) -> Producer:
    broker = connection.broker
    invariant(connection.peer is not None, "commands come after CONNECT")
    return Producer(
        request.producer_id,
        request.producer_name or broker.unique_name(),
        connection,
        epoch=request.epoch,
        access_mode=AccessMode(request.producer_access_mode),
        metadata={item.key: item.value for item in request.metadata},
        address=connection.address,
        client_version=connection.peer.client_version if connection.peer else "",
        connected_ms=broker.engine.now_ms,
    )


async def _take_over(
    connection: Connection, topic: Topic, holder: Producer, newcomer: Producer
) -> None:
    """Make room for ``newcomer`` if its name is held by its own past or by a dead connection."""
    port = cast("Connection", holder.port)
    if port is connection and holder.producer_id == newcomer.producer_id:
        topic.remove_producer(holder)
        return
    if await port.keep_alive.is_alive():
        raise ProducerBusyError(f"Producer with name '{holder.name}' is already connected to topic")


async def _initial_subscription(connection: Connection, topic: Topic, name: str) -> None:
    if name not in topic.subscriptions:
        await create_subscription(
            connection.broker, topic, name, at_ordinal=topic.log.first, properties={}
        )


async def _schema_version(broker: Broker, name: TopicName, request: CommandProducer) -> bytes:
    return await agree(broker, name, request.schema) if request.HasField("schema") else NO_VERSION


def _answer(
    connection: Connection, request_id: int, producer: Producer, schema_version: bytes
) -> None:
    connection.write(
        encode.producer_success(
            request_id, producer_name=producer.name, schema_version=schema_version
        )
    )


async def close_producer(connection: Connection, command: BaseCommand) -> None:
    """Disconnect a producer when what it sent is durable and answered."""
    request = command.close_producer
    connection.creating.pop(("producer", request.producer_id), None)
    entry = connection.producers.get(request.producer_id)
    if entry is not None:
        producer, topic = entry
        topic.discard_parked(producer)  # its client has given up waiting for them
        if producer.pending_count:
            with contextlib.suppress(HeadgateError):  # each SEND is answered with its own error
                await connection.broker.when_durable(topic)
            connection.broker.begin_turn()
        if connection.producers.get(request.producer_id) is entry:
            connection.forget_producer(request.producer_id)
        topic.remove_producer(producer)
    connection.write(encode.success(request.request_id))
