"""The frames that a client sends, one function each.

For simulator, benchmarks and the broker's own small client, which need only these. The caller
chooses all ids; nothing here keeps state.
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
    "auth_response",
    "close_consumer",
    "close_producer",
    "connect",
    "consumer_stats",
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
    "watch_topic_list",
    "watch_topic_list_close",
]


def connect(
    *,
    client_version: str = "headgate",
    protocol_version: int = PROTOCOL_VERSION_MAX,
    auth_method: str = "",
    auth_data: bytes = b"",
    refreshes_credentials: bool = False,
    original_principal: str = "",
    original_auth_method: str = "",
    original_auth_data: str = "",
) -> bytes:
    """Open the connection. This is the first frame.

    ``auth_method`` and ``auth_data`` are the client's credentials, the ``original`` ones those of
    the client behind a proxy. ``refreshes_credentials``: it answers AUTH_CHALLENGE.
    """
    command = BaseCommand(type=CommandType.CONNECT)
    request = command.connect
    request.client_version = client_version
    request.protocol_version = protocol_version
    if auth_method:
        request.auth_method_name = auth_method
        request.auth_data = auth_data
    if refreshes_credentials:
        request.feature_flags.supports_auth_refresh = True
    if original_principal:
        request.original_principal = original_principal
    if original_auth_method:
        request.original_auth_method = original_auth_method
        request.original_auth_data = original_auth_data
    return encode_frame(command)


def auth_response(method: str, data: bytes) -> bytes:
    """Present new credentials, after an AUTH_CHALLENGE."""
    command = BaseCommand(type=CommandType.AUTH_RESPONSE)
    answer = command.authResponse
    answer.client_version = "headgate"
    answer.protocol_version = PROTOCOL_VERSION_MAX
    answer.response.auth_method_name = method
    answer.response.auth_data = data
    return encode_frame(command)


def partitioned_metadata(request_id: int, topic: str, *, auto_creation: bool = True) -> bytes:
    """Ask for the partition count of ``topic``; ``auto_creation`` lets the broker create it."""
    command = BaseCommand(type=CommandType.PARTITIONED_METADATA)
    request = command.partitionMetadata
    request.topic = topic
    request.request_id = request_id
    request.metadata_auto_creation_enabled = auto_creation
    return encode_frame(command)


def lookup(request_id: int, topic: str, *, authoritative: bool = False) -> bytes:
    """Ask which broker serves ``topic``."""
    command = BaseCommand(type=CommandType.LOOKUP)
    request = command.lookupTopic
    request.topic = topic
    request.request_id = request_id
    request.authoritative = authoritative
    return encode_frame(command)


def get_topics_of_namespace(
    request_id: int,
    namespace: str,
    mode: TopicListMode = TopicListMode.PERSISTENT,
    *,
    pattern: str | None = None,
    topics_hash: str | None = None,
) -> bytes:
    """Ask for the topics of ``namespace`` (``tenant/name``): those that match ``pattern``, and none
    if their hash is ``topics_hash``."""
    command = BaseCommand(type=CommandType.GET_TOPICS_OF_NAMESPACE)
    request = command.getTopicsOfNamespace
    request.request_id = request_id
    request.namespace = namespace
    request.mode = mode
    if pattern is not None:
        request.topics_pattern = pattern
    if topics_hash is not None:
        request.topics_hash = topics_hash
    return encode_frame(command)


def watch_topic_list(
    request_id: int,
    watcher_id: int,
    namespace: str,
    pattern: str,
    *,
    topics_hash: str | None = None,
) -> bytes:
    """Ask for the topics of ``namespace`` that match ``pattern``, and for their later changes.
    ``topics_hash``: of the list that the client has."""
    command = BaseCommand(type=CommandType.WATCH_TOPIC_LIST)
    request = command.watchTopicList
    request.request_id = request_id
    request.watcher_id = watcher_id
    request.namespace = namespace
    request.topics_pattern = pattern
    if topics_hash is not None:
        request.topics_hash = topics_hash
    return encode_frame(command)


def watch_topic_list_close(request_id: int, watcher_id: int) -> bytes:
    """End a watcher."""
    command = BaseCommand(type=CommandType.WATCH_TOPIC_LIST_CLOSE)
    command.watchTopicListClose.request_id = request_id
    command.watchTopicListClose.watcher_id = watcher_id
    return encode_frame(command)


def consumer_stats(request_id: int, consumer_id: int) -> bytes:
    """Ask for the statistics of a consumer."""
    command = BaseCommand(type=CommandType.CONSUMER_STATS)
    command.consumerStats.request_id = request_id
    command.consumerStats.consumer_id = consumer_id
    return encode_frame(command)


def get_schema(request_id: int, topic: str, version: bytes | None = None) -> bytes:
    """Ask for a topic's schema; without ``version``, for the latest."""
    command = BaseCommand(type=CommandType.GET_SCHEMA)
    request = command.getSchema
    request.request_id = request_id
    request.topic = topic
    if version is not None:
        request.schema_version = version
    return encode_frame(command)


def get_or_create_schema(request_id: int, topic: str, schema: Schema) -> bytes:
    """Ask for the version of a schema; a topic without a schema takes it."""
    command = BaseCommand(type=CommandType.GET_OR_CREATE_SCHEMA)
    request = command.getOrCreateSchema
    request.request_id = request_id
    request.topic = topic
    request.schema.CopyFrom(schema)
    return encode_frame(command)


def producer(
    request_id: int,
    producer_id: int,
    topic: str,
    *,
    name: str | None = None,
    epoch: int = 0,
    access_mode: ProducerAccessMode = ProducerAccessMode.SHARED,
    topic_epoch: int | None = None,
    schema: Schema | None = None,
    encrypted: bool = False,
) -> bytes:
    """Create a producer; without ``name`` the broker chooses one. ``topic_epoch`` is the one that
    an exclusive producer was given before; ``encrypted`` announces that it encrypts."""
    command = BaseCommand(type=CommandType.PRODUCER)
    request = command.producer
    request.request_id = request_id
    request.producer_id = producer_id
    request.topic = topic
    request.epoch = epoch
    request.producer_access_mode = access_mode
    request.user_provided_producer_name = name is not None
    if topic_epoch is not None:
        request.topic_epoch = topic_epoch
    if encrypted:
        request.encrypted = True
    if schema is not None:
        request.schema.CopyFrom(schema)
    if name is not None:
        request.producer_name = name
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
    """The part of a SEND frame before an entry of ``body_size`` bytes.

    Set ``message_count`` for batches only, and ``highest_sequence_id`` as the Java client does.
    """
    command = BaseCommand(type=CommandType.SEND)
    request = command.send
    request.producer_id = producer_id
    request.sequence_id = sequence_id
    if message_count is not None:
        request.num_messages = message_count
    if highest_sequence_id is not None:
        request.highest_sequence_id = highest_sequence_id
    if is_chunk:
        request.is_chunk = True
    return encode_frame_head(command, body_size)


def send(
    producer_id: int,
    sequence_id: int,
    body: bytes,
    *,
    message_count: int | None = None,
    highest_sequence_id: int | None = None,
    is_chunk: bool = False,
) -> bytes:
    """Publish an entry from :func:`headgate.wire.entry.build_entry`. As :func:`send_head`."""
    head = send_head(
        producer_id,
        sequence_id,
        len(body),
        message_count=message_count,
        highest_sequence_id=highest_sequence_id,
        is_chunk=is_chunk,
    )
    return head + body


def close_producer(request_id: int, producer_id: int) -> bytes:
    """Close a producer after its SENDs."""
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
    """Subscribe a consumer. ``durable=False`` with ``start`` makes it a reader."""
    command = BaseCommand(type=CommandType.SUBSCRIBE)
    request = command.subscribe
    request.request_id = request_id
    request.consumer_id = consumer_id
    request.topic = topic
    request.subscription = subscription
    request.subType = kind
    request.initialPosition = initial_position
    request.durable = durable
    if consumer_name is not None:
        request.consumer_name = consumer_name
    if priority_level is not None:
        request.priority_level = priority_level
    if start is not None:
        request.start_message_id.CopyFrom(message_id_of(start))
    for key, value in (properties or {}).items():
        request.subscription_properties.add(key=key, value=value)
    if schema is not None:
        request.schema.CopyFrom(schema)
    return encode_frame(command)


def flow(consumer_id: int, permits: int) -> bytes:
    """Grant ``permits`` for more messages (not entries)."""
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
    """Acknowledge entries; a cumulative acknowledgement names exactly one.

    ``ack_set`` (signed words, set bit = not acknowledged) applies to each position.
    """
    command = BaseCommand(type=CommandType.ACK)
    request = command.ack
    request.consumer_id = consumer_id
    request.ack_type = kind
    for position in positions:
        message_id = message_id_of(position)
        message_id.ack_set.extend(ack_set)
        request.message_id.append(message_id)
    if request_id is not None:
        request.request_id = request_id
    return encode_frame(command)


def redeliver(
    consumer_id: int, positions: Iterable[Position] = (), *, consumer_epoch: int | None = None
) -> bytes:
    """Ask for redelivery of these entries; without any, of all that are unacknowledged."""
    command = BaseCommand(type=CommandType.REDELIVER_UNACKNOWLEDGED_MESSAGES)
    request = command.redeliverUnacknowledgedMessages
    request.consumer_id = consumer_id
    request.message_ids.extend(message_id_of(position) for position in positions)
    if consumer_epoch is not None:
        request.consumer_epoch = consumer_epoch
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
    ack_set: Sequence[int] = (),
    batch_index: int = -1,
) -> bytes:
    """Seek to an entry or to a publish time: pass exactly one.

    ``ack_set`` (signed words, set bit = not acknowledged) or ``batch_index`` name a message of the
    entry, as Java and Go do.
    """
    command = BaseCommand(type=CommandType.SEEK)
    request = command.seek
    request.request_id = request_id
    request.consumer_id = consumer_id
    if position is not None:
        request.message_id.CopyFrom(message_id_of(position, batch_index=batch_index))
        request.message_id.ack_set.extend(ack_set)
    if publish_time_ms is not None:
        request.message_publish_time = publish_time_ms & UINT64_MASK
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
