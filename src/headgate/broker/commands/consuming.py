"""SUBSCRIBE, UNSUBSCRIBE, SEEK, REDELIVER, CLOSE_CONSUMER and GET_LAST_MESSAGE_ID."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from headgate.base.ack_set import AckSet
from headgate.base.errors import HeadgateError
from headgate.base.names import check_subscription, parse_topic
from headgate.base.positions import EARLIEST, Position
from headgate.base.units import INT64_MAX, MS_PER_S
from headgate.broker.commands.acknowledging import is_still
from headgate.broker.commands.schemas import agree
from headgate.broker.connection_bounds import SLICE_IDS, check_room
from headgate.broker.entries import last_message
from headgate.broker.subscriptions import create_subscription, delete_subscription, seek
from headgate.engine.consumer import Consumer
from headgate.engine.errors import (
    ConsumerBusyError,
    NotAllowedError,
    SubscriptionBusyError,
    TopicFencedError,
)
from headgate.engine.subscription import Subscription
from headgate.engine.topic import Topic
from headgate.engine.types import SubscriptionType
from headgate.policy.settings import INT32_MAX
from headgate.wire import encode
from headgate.wire.codes import InitialPosition, ServerError
from headgate.wire.codes import SubscriptionType as WireType
from headgate.wire.errors import RemoteProtocolError
from headgate.wire.ids import position_of, to_signed
from headgate.wire.messages import (
    BaseCommand,
    CommandRedeliverUnacknowledgedMessages,
    CommandSubscribe,
)

if TYPE_CHECKING:
    from headgate.broker.connection import Connection


async def subscribe(connection: Connection, command: BaseCommand) -> None:
    """Connect a consumer; its subscription (and topic) are created if they do not exist."""
    request = command.subscribe
    if request.consumer_id in connection.consumers:
        connection.write(encode.success(request.request_id))
        return
    key = ("consumer", request.consumer_id)
    if key in connection.creating:
        raise TopicFencedError("Consumer is already present on the connection")
    check_room(connection, request)
    connection.creating[key] = request
    try:
        name = parse_topic(request.topic)
        check_subscription(request.subscription)
        _check_type(request)
        broker = connection.broker
        topic = await broker.registry.get_or_create(name, create=request.force_topic_creation)
        if request.HasField("schema"):
            await agree(broker, name, request.schema)
        subscription = await _find_or_create(connection, topic, request)
        await _make_room(connection, subscription, SubscriptionType(request.subType))
        broker.begin_turn()
        if not connection.is_open or connection.creating.get(key) is not request:
            if not (subscription.is_durable or subscription.consumers or subscription.removed):
                topic.remove_subscription(subscription.name)
            return
        consumer = _make(connection, request)
        subscription.add_consumer(consumer, SubscriptionType(request.subType))
        connection.consumers[request.consumer_id] = (consumer, subscription)
        connection.write(encode.success(request.request_id))
    finally:
        if connection.creating.get(key) is request:
            del connection.creating[key]


def _check_type(request: CommandSubscribe) -> None:
    if request.subType == WireType.KEY_SHARED:
        raise NotAllowedError("Key_Shared is not supported: Exclusive, Shared and Failover are")
    if request.read_compacted and request.subType == WireType.SHARED:
        raise NotAllowedError("readCompacted only allowed on failover or exclusive subscriptions")


async def _find_or_create(
    connection: Connection, topic: Topic, request: CommandSubscribe
) -> Subscription:
    name = request.subscription
    # Whoever is creating or moving it just now comes first.
    await connection.broker.cursor_work.settled(topic, name)
    present = topic.subscriptions.get(name)
    if present is not None:
        if present.is_durable != request.durable:
            kind = "durable" if present.is_durable else "non-durable"
            raise NotAllowedError(f"Subscription {name} exists and is {kind}")
        if request.start_message_rollback_duration_sec > 0 and not present.consumers:
            await seek(connection.broker, present, _rolled_back(connection, topic, request))
        return present
    if topic.fenced:
        raise TopicFencedError("Topic is temporarily unavailable")
    ordinal = _start(connection, topic, request)
    if not request.durable:
        connection.broker.begin_turn()
        return topic.add_subscription(name, AckSet(ordinal - 1), cursor_id=None)
    return await create_subscription(
        connection.broker,
        topic,
        name,
        at_ordinal=ordinal,
        properties={item.key: item.value for item in request.subscription_properties},
    )


def _start(connection: Connection, topic: Topic, request: CommandSubscribe) -> int:
    """Where a new subscription starts. A start id is delivered itself (it may be half read): the
    client drops what it does not want."""
    log = topic.log
    if request.start_message_rollback_duration_sec > 0:
        return _rolled_back(connection, topic, request)
    if request.HasField("start_message_id"):
        return log.ordinal_at_or_after(*position_of(request.start_message_id))
    if request.durable and request.initialPosition == InitialPosition.EARLIEST:
        return log.first
    return log.end


def _rolled_back(connection: Connection, topic: Topic, request: CommandSubscribe) -> int:
    since_ms = connection.broker.engine.now_ms - (
        request.start_message_rollback_duration_sec * MS_PER_S
    )
    return connection.broker.ordinal_at_time(topic, since_ms)


async def _make_room(
    connection: Connection, subscription: Subscription, kind: SubscriptionType
) -> None:
    """An exclusive holder whose connection is dead gives way."""
    if kind is not SubscriptionType.EXCLUSIVE or not subscription.consumers:
        return
    if subscription.type is not kind:
        return
    holder = cast("Connection", subscription.consumers[0].port)
    if holder is connection or await holder.keep_alive.is_alive():
        raise ConsumerBusyError("Exclusive consumer is already connected")


def _make(connection: Connection, request: CommandSubscribe) -> Consumer:
    broker = connection.broker
    return Consumer(
        request.consumer_id,
        request.consumer_name or broker.unique_name(),
        connection,
        priority_level=request.priority_level,
        metadata={item.key: item.value for item in request.metadata},
        address=connection.address,
        client_version=connection.peer.client_version if connection.peer else "",
        connected_ms=broker.engine.now_ms,
        epoch=to_signed(request.consumer_epoch) if request.HasField("consumer_epoch") else -1,
    )


def flow(connection: Connection, command: BaseCommand) -> None:
    """Let a consumer be sent more messages.

    Raises:
        RemoteProtocolError: no client may ask for so many.
    """
    asked = command.flow
    permits = asked.messagePermits
    if not 1 <= permits <= INT32_MAX:
        # Unsigned on the wire: a Java client's negative number arrives as one above this.
        raise RemoteProtocolError(f"FLOW of {permits} permits: 1 to {INT32_MAX} are allowed")
    entry = connection.consumers.get(asked.consumer_id)
    if entry is not None:
        consumer, subscription = entry
        # The total stays what Java's clients and tools can read, too.
        permits = min(permits, INT32_MAX - consumer.permits)
        if permits > 0:
            subscription.flow(consumer, permits)


def redeliver(connection: Connection, command: BaseCommand) -> None:
    """Take entries back from a consumer: those named (in slices), or all it holds."""
    request = command.redeliverUnacknowledgedMessages
    entry = connection.consumers.get(request.consumer_id)
    if entry is None:
        return
    consumer, subscription = entry
    if request.message_ids and subscription.type.is_shared:
        connection.carry_on(_redeliver_in_slices(connection, request, entry))
    elif not connection.is_partial:
        subscription.redeliver(consumer, None, _epoch(request))


def _redeliver_in_slices(
    connection: Connection,
    request: CommandRedeliverUnacknowledgedMessages,
    entry: tuple[Consumer, Subscription],
) -> Iterator[int]:
    consumer, subscription = entry
    log = subscription.topic.log
    for start in range(0, len(request.message_ids), SLICE_IDS):
        if not is_still(connection, entry):
            return  # all that it held was taken back when it went
        ordinals: list[int] = []
        message_ids = request.message_ids[start : start + SLICE_IDS]
        for message_id in message_ids:
            position = position_of(message_id)
            ordinal = log.ordinal_at_or_after(*position)
            if ordinal < log.end and log.position(ordinal) == position:
                ordinals.append(ordinal)
        subscription.redeliver(consumer, ordinals, _epoch(request))
        yield len(message_ids)


def _epoch(request: CommandRedeliverUnacknowledgedMessages) -> int:
    return to_signed(request.consumer_epoch) if request.HasField("consumer_epoch") else -1


def close_consumer(connection: Connection, command: BaseCommand) -> None:
    """Disconnect a consumer; what it holds goes to the others."""
    request = command.close_consumer
    connection.creating.pop(("consumer", request.consumer_id), None)
    entry = connection.consumers.pop(request.consumer_id, None)
    if entry is not None:
        consumer, subscription = entry
        subscription.remove_consumer(consumer)
    connection.write(encode.success(request.request_id))


def _own(connection: Connection, consumer_id: int) -> tuple[Consumer, Subscription]:
    entry = connection.consumers.get(consumer_id)
    if entry is None:
        raise NotAllowedError(f"Consumer {consumer_id} does not exist on this connection")
    return entry


async def unsubscribe(connection: Connection, command: BaseCommand) -> None:
    """Delete the subscription of its only consumer."""
    request = command.unsubscribe
    consumer, subscription = _own(connection, request.consumer_id)
    if len(subscription.consumers) > 1 and not request.force:
        raise SubscriptionBusyError(
            "Unconnected or shared consumer attempting to unsubscribe while others are connected"
        )
    subscription.remove_consumer(consumer)
    subscription.disconnect_consumers()
    if subscription.is_durable and not subscription.removed:
        try:
            await delete_subscription(connection.broker, subscription)
        except HeadgateError:
            connection.close_consumer(request.consumer_id)  # so that its client comes back
            raise
    connection.consumers.pop(request.consumer_id, None)
    connection.write(encode.success(request.request_id))


async def seek_consumer(connection: Connection, command: BaseCommand) -> None:
    """Move a subscription to a message or a publish time; its consumers come back afterwards."""
    request = command.seek
    _, subscription = _own(connection, request.consumer_id)
    topic = subscription.topic
    if request.HasField("message_publish_time"):
        ordinal = connection.broker.ordinal_at_time(
            topic, min(request.message_publish_time, INT64_MAX)
        )
    elif request.HasField("message_id"):
        ordinal = topic.log.ordinal_at_or_after(*position_of(request.message_id))
    else:
        raise NotAllowedError("SEEK names neither a message nor a time")
    if subscription.fenced:
        connection.write(
            encode.error(request.request_id, ServerError.UNKNOWN_ERROR, "Another seek is going on")
        )
        return
    await seek(connection.broker, subscription, ordinal)
    connection.write(encode.success(request.request_id))


async def last_message_id(connection: Connection, command: BaseCommand) -> None:
    """Tell the last durable message, and up to where the subscription has acknowledged."""
    request = command.getLastMessageId
    _, subscription = _own(connection, request.consumer_id)
    topic = subscription.topic
    log = topic.log
    found = await last_message(connection.broker, topic)
    held = log.end > log.first
    mark = subscription.acks.mark_delete
    marked = log.position(mark) if log.first <= mark < log.end else Position(-1, -1)
    connection.write(
        encode.last_message_id(
            request.request_id,
            found.position if held else EARLIEST,
            partition=topic.partition,
            batch_index=found.batch_index if held else -1,
            mark_delete=marked,
        )
    )
