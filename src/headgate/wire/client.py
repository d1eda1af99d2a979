"""The frames that a client sends, one function each.

For the simulator, the benchmarks and the broker's own small client: what they need of the
protocol and no more. Ids are the caller's; nothing here keeps state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from headgate.base.positions import Position
from headgate.base.units import UINT64_MASK
from headgate.wire.codes import (
    AckType,
    CommandType,
    InitialPosition,
    ProducerAccessMode,
    SubscriptionType,
    TopicListMode,
)
from headgate.wire.encode import ping, pong
from headgate.wire.frame import encode_frame, encode_frame_head
from headgate.wire.ids import message_id_of
from headgate.wire.messages import BaseCommand, Schema
from headgate.wire.peer import PROTOCOL_VERSION_MAX

__all__ = [
    "ack",
    "close_consumer",
    "close_producer",
    "connect",
    "flow",
    "get_last_message_id",
    "get_or_create_schema",
    "get_schema",
    "get_topics_of_namespace",
    "lookup",
    "partitioned_metadata",
    "ping",
    "pong",
    "producer",
    "redeliver",
    "seek",
    "send",
    "send_head",
    "subscribe",
    "unsubscribe",
]


def connect(
    *, client_version: str = "headgate", protocol_version: int = PROTOCOL_VERSION_MAX
) -> bytes:
    """Open the connection; the first frame."""
    command = BaseCommand(type=CommandType.CONNECT)
    command.connect.client_version = client_version
    command.connect.protocol_version = protocol_version
    return encode_frame(command)


def partitioned_metadata(request_id: int, topic: str, *, auto_creation: bool = True) -> bytes:
    """Ask how many partitions ``topic`` has, allowing the broker to create it or not."""
    command = BaseCommand(type=CommandType.PARTITIONED_METADATA)
    asked = command.partitionMetadata
    asked.topic = topic
    asked.request_id = request_id
    asked.metadata_auto_creation_enabled = auto_creation
    return encode_frame(command)


def lookup(request_id: int, topic: str, *, authoritative: bool = False) -> bytes:
    """Ask which broker serves ``topic``."""
    command = BaseCommand(type=CommandType.LOOKUP)
    asked = command.lookupTopic
    asked.topic = topic
    asked.request_id = request_id
    asked.authoritative = authoritative
    return encode_frame(command)


def get_topics_of_namespace(
    request_id: int, namespace: str, mode: TopicListMode = TopicListMode.PERSISTENT
) -> bytes:
    """Ask for the topics of ``namespace`` (``tenant/name``)."""
    command = BaseCommand(type=CommandType.GET_TOPICS_OF_NAMESPACE)
    asked = command.getTopicsOfNamespace
    asked.request_id = request_id
    asked.namespace = namespace
    asked.mode = mode
    return encode_frame(command)


def get_schema(request_id: int, topic: str, version: bytes | None = None) -> bytes:
    """Ask for a topic's schema, the last one without a ``version``."""
    command = BaseCommand(type=CommandType.GET_SCHEMA)
    asked = command.getSchema
    asked.request_id = request_id
    asked.topic = topic
    if version is not None:
        asked.schema_version = version
    return encode_frame(command)


def get_or_create_schema(request_id: int, topic: str, schema: Schema) -> bytes:
    """Ask for the version of a schema, which the topic may take."""
    command = BaseCommand(type=CommandType.GET_OR_CREATE_SCHEMA)
    asked = command.getOrCreateSchema
    asked.request_id = request_id
    asked.topic = topic
    asked.schema.CopyFrom(schema)
    return encode_frame(command)


def producer(
    request_id: int,
    producer_id: int,
    topic: str,
    *,
    name: str | None = None,
    epoch: int = 0,
    access_mode: ProducerAccessMode = ProducerAccessMode.SHARED,
    schema: Schema | None = None,
) -> bytes:
    """Create a producer; without ``name`` the broker chooses one."""
    command = BaseCommand(type=CommandType.PRODUCER)
    asked = command.producer
    asked.request_id = request_id
    asked.producer_id = producer_id
    asked.topic = topic
    asked.epoch = epoch
    asked.producer_access_mode = access_mode
    asked.user_provided_producer_name = name is not None
    if schema is not None:
        asked.schema.CopyFrom(schema)
    if name is not None:
        asked.producer_name = name
    return encode_frame(command)


def send_head(
    producer_id: int,
    sequence_id: int,
    body_size: int,
    *,
    message_count: int | None = None,
    highest_sequence_id: int | None = None,
    is_chunk: bool = False,
) -> bytes:
    """The part of a SEND frame in front of an entry of ``body_size`` bytes.

    ``message_count`` is set for batches only; ``highest_sequence_id`` as Java sends it.
    """
    command = BaseCommand(type=CommandType.SEND)
    sent = command.send
    sent.producer_id = producer_id
    sent.sequence_id = sequence_id
    if message_count is not None:
        sent.num_messages = message_count
    if highest_sequence_id is not None:
        sent.highest_sequence_id = highest_sequence_id
    if is_chunk:
        sent.is_chunk = True
    return encode_frame_head(command, body_size)


def send(
    producer_id: int, sequence_id: int, body: bytes, *, message_count: int | None = None
) -> bytes:
    """Publish an entry, made by :func:`headgate.wire.entry.build_entry`."""
    head = send_head(producer_id, sequence_id, len(body), message_count=message_count)
    return head + body


def close_producer(request_id: int, producer_id: int) -> bytes:
    """Close a producer once its sends are through."""
    command = BaseCommand(type=CommandType.CLOSE_PRODUCER)
    command.close_producer.request_id = request_id
    command.close_producer.producer_id = producer_id
    return encode_frame(command)


def subscribe(
    request_id: int,
    consumer_id: int,
    topic: str,
    subscription: str,
    *,
    kind: SubscriptionType = SubscriptionType.EXCLUSIVE,
    initial_position: InitialPosition = InitialPosition.LATEST,
    consumer_name: str | None = None,
    priority_level: int | None = None,
    durable: bool = True,
    start: Position | None = None,
    properties: Mapping[str, str] | None = None,
    schema: Schema | None = None,
) -> bytes:
    """Attach a consumer. ``durable=False`` with ``start`` makes it a reader."""
    command = BaseCommand(type=CommandType.SUBSCRIBE)
    asked = command.subscribe
    asked.request_id = request_id
    asked.consumer_id = consumer_id
    asked.topic = topic
    asked.subscription = subscription
    asked.subType = kind
    asked.initialPosition = initial_position
    asked.durable = durable
    if consumer_name is not None:
        asked.consumer_name = consumer_name
    if priority_level is not None:
        asked.priority_level = priority_level
    if start is not None:
        asked.start_message_id.CopyFrom(message_id_of(start))
    for key, value in (properties or {}).items():
        asked.subscription_properties.add(key=key, value=value)
    if schema is not None:
        asked.schema.CopyFrom(schema)
    return encode_frame(command)


def flow(consumer_id: int, permits: int) -> bytes:
    """Allow ``permits`` more messages (not entries)."""
    command = BaseCommand(type=CommandType.FLOW)
    command.flow.consumer_id = consumer_id
    command.flow.messagePermits = permits
    return encode_frame(command)


def ack(
    consumer_id: int,
    positions: Iterable[Position],
    kind: AckType = AckType.INDIVIDUAL,
    *,
    request_id: int | None = None,
    ack_set: Sequence[int] = (),
) -> bytes:
    """Acknowledge entries; a cumulative ack names exactly one.

    ``ack_set`` (signed words, set bit = not acknowledged) applies to each position.
    """
    command = BaseCommand(type=CommandType.ACK)
    told = command.ack
    told.consumer_id = consumer_id
    told.ack_type = kind
    for position in positions:
        message_id = message_id_of(position)
        message_id.ack_set.extend(ack_set)
        told.message_id.append(message_id)
    if request_id is not None:
        told.request_id = request_id
    return encode_frame(command)


def redeliver(
    consumer_id: int, positions: Iterable[Position] = (), *, consumer_epoch: int | None = None
) -> bytes:
    """Ask for these entries again, or for everything unacknowledged."""
    command = BaseCommand(type=CommandType.REDELIVER_UNACKNOWLEDGED_MESSAGES)
    asked = command.redeliverUnacknowledgedMessages
    asked.consumer_id = consumer_id
    asked.message_ids.extend(message_id_of(position) for position in positions)
    if consumer_epoch is not None:
        asked.consumer_epoch = consumer_epoch
    return encode_frame(command)


def unsubscribe(request_id: int, consumer_id: int, *, force: bool = False) -> bytes:
    """Delete the consumer's subscription."""
    command = BaseCommand(type=CommandType.UNSUBSCRIBE)
    command.unsubscribe.request_id = request_id
    command.unsubscribe.consumer_id = consumer_id
    command.unsubscribe.force = force
    return encode_frame(command)


def seek(
    request_id: int,
    consumer_id: int,
    *,
    position: Position | None = None,
    publish_time_ms: int | None = None,
) -> bytes:
    """Move the subscription to an entry or to a publish time: give exactly one."""
    command = BaseCommand(type=CommandType.SEEK)
    asked = command.seek
    asked.request_id = request_id
    asked.consumer_id = consumer_id
    if position is not None:
        asked.message_id.CopyFrom(message_id_of(position))
    if publish_time_ms is not None:
        asked.message_publish_time = publish_time_ms & UINT64_MASK
    return encode_frame(command)


def get_last_message_id(request_id: int, consumer_id: int) -> bytes:
    """Ask for the topic's last entry."""
    command = BaseCommand(type=CommandType.GET_LAST_MESSAGE_ID)
    command.getLastMessageId.request_id = request_id
    command.getLastMessageId.consumer_id = consumer_id
    return encode_frame(command)


def close_consumer(request_id: int, consumer_id: int) -> bytes:
    """Close a consumer; its subscription stays."""
    command = BaseCommand(type=CommandType.CLOSE_CONSUMER)
    command.close_consumer.request_id = request_id
    command.close_consumer.consumer_id = consumer_id
    return encode_frame(command)
