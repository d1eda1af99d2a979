"""The infrequent frames that a broker sends, one function each.

:mod:`headgate.wire.encode` re-exports them. The generated classes build them: clarity before speed.
Request, producer and consumer ids are the client's, unchanged; positions are signed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from headgate.base.positions import Position
from headgate.wire.codes import CommandType, LookupResult, PartitionedMetadataResult, ServerError
from headgate.wire.frame import encode_frame, frame_of
from headgate.wire.ids import NO_REQUEST, message_id_of, to_unsigned
from headgate.wire.messages import BaseCommand, CommandGetSchemaResponse
from headgate.wire.varint import varint


def connected(
    *,
    protocol_version: int,
    message_bytes_max: int,
    server_version: str,
    watches_topics: bool = False,
) -> bytes:
    """Accept a CONNECT.

    ``protocol_version`` is the highest that both sides speak; clients do not send messages above
    ``message_bytes_max``. Of the optional features this announces those that are built:
    PARTITIONED_METADATA that does not create the topic and, with ``watches_topics``,
    WATCH_TOPIC_LIST. The Java client uses an extension as soon as a server announces it.
    """
    command = BaseCommand(type=CommandType.CONNECTED)
    reply = command.connected
    reply.server_version = server_version
    reply.protocol_version = protocol_version
    reply.max_message_size = message_bytes_max
    reply.feature_flags.supports_get_partitioned_metadata_without_auto_creation = True
    if watches_topics:
        reply.feature_flags.supports_topic_watchers = True
    return encode_frame(command)


REFRESH: Final = b"PulsarAuthRefresh"
"""The data of a challenge that asks for new credentials; clients compare with it."""


def auth_challenge(method: str, *, protocol_version: int, server_version: str) -> bytes:
    """Ask a connected client for new credentials of ``method``."""
    command = BaseCommand(type=CommandType.AUTH_CHALLENGE)
    reply = command.authChallenge
    reply.server_version = server_version
    reply.protocol_version = protocol_version
    reply.challenge.auth_method_name = method
    reply.challenge.auth_data = REFRESH
    return encode_frame(command)


def success(request_id: int) -> bytes:
    """Report that the request succeeded; what it stores is durable."""
    command = BaseCommand(type=CommandType.SUCCESS)
    command.success.request_id = request_id
    return encode_frame(command)


def error(request_id: int, code: ServerError, message: str) -> bytes:
    """Report that the request failed. The id ``NO_REQUEST`` refuses the whole connection."""
    command = BaseCommand(type=CommandType.ERROR)
    reply = command.error
    reply.request_id = request_id
    reply.error = code
    reply.message = message
    return encode_frame(command)


def producer_success(
    request_id: int,
    *,
    producer_name: str,
    last_sequence_id: int = -1,
    schema_version: bytes = b"",
    topic_epoch: int | None = None,
    ready: bool = True,
) -> bytes:
    """Report that the producer exists.

    ``last_sequence_id`` is -1 unless deduplication is on; ``schema_version`` is 8 bytes, or
    none without a schema; ``topic_epoch`` belongs to the exclusive access modes. ``ready=False``
    announces a second reply under the same request id.
    """
    command = BaseCommand(type=CommandType.PRODUCER_SUCCESS)
    reply = command.producer_success
    reply.request_id = request_id
    reply.producer_name = producer_name
    reply.last_sequence_id = last_sequence_id
    reply.schema_version = schema_version
    reply.producer_ready = ready
    if topic_epoch is not None:
        reply.topic_epoch = topic_epoch
    return encode_frame(command)


_SCHEMA: Final = b"\x22"
"""The tag of ``schema`` (field 4) in ``CommandGetSchemaResponse``."""
_GET_SCHEMA_RESPONSE: Final = b"\x9a\x02"
"""The tag of ``getSchemaResponse`` (field 35) in ``BaseCommand``."""


def schema(request_id: int, found: bytes, version: bytes) -> bytes:
    """Return a topic's schema, an encoded ``Schema``, and its version of 8 bytes."""
    head = CommandGetSchemaResponse(request_id=request_id, schema_version=version)
    reply = head.SerializeToString() + _SCHEMA + varint(len(found)) + found
    command = BaseCommand(type=CommandType.GET_SCHEMA_RESPONSE).SerializeToString()
    return frame_of(command + _GET_SCHEMA_RESPONSE + varint(len(reply)) + reply)


def schema_known(request_id: int, version: bytes) -> bytes:
    """Report the version of a schema that the topic has or takes."""
    command = BaseCommand(type=CommandType.GET_OR_CREATE_SCHEMA_RESPONSE)
    reply = command.getOrCreateSchemaResponse
    reply.request_id = request_id
    reply.schema_version = version
    return encode_frame(command)


def lookup_connect(
    request_id: int,
    *,
    broker_url: str,
    broker_url_tls: str = "",
    through_service_url: bool = False,
) -> bytes:
    """Report the addresses of the broker that serves the topic; a client picks the one it can use.
    An empty address is left out.

    ``through_service_url`` makes the client connect through the address that it already uses.
    """
    command = BaseCommand(type=CommandType.LOOKUP_RESPONSE)
    reply = command.lookupTopicResponse
    reply.request_id = request_id
    reply.response = LookupResult.CONNECT
    reply.authoritative = True
    if broker_url:
        reply.brokerServiceUrl = broker_url
    if broker_url_tls:
        reply.brokerServiceUrlTls = broker_url_tls
    reply.proxy_through_service_url = through_service_url
    return encode_frame(command)


def lookup_failed(request_id: int, code: ServerError, message: str) -> bytes:
    """Report that no broker serves the topic. Some codes make clients close their connection."""
    command = BaseCommand(type=CommandType.LOOKUP_RESPONSE)
    reply = command.lookupTopicResponse
    reply.request_id = request_id
    reply.response = LookupResult.FAILED
    reply.error = code
    reply.message = message
    return encode_frame(command)


def partition_metadata(request_id: int, partitions: int) -> bytes:
    """Report the number of partitions; 0 for a topic that is not partitioned, or does not exist."""
    command = BaseCommand(type=CommandType.PARTITIONED_METADATA_RESPONSE)
    reply = command.partitionMetadataResponse
    reply.request_id = request_id
    reply.response = PartitionedMetadataResult.SUCCESS
    reply.partitions = partitions
    return encode_frame(command)


def partition_metadata_failed(request_id: int, code: ServerError, message: str) -> bytes:
    """Report that the number of partitions is not available."""
    command = BaseCommand(type=CommandType.PARTITIONED_METADATA_RESPONSE)
    reply = command.partitionMetadataResponse
    reply.request_id = request_id
    reply.response = PartitionedMetadataResult.FAILED
    reply.error = code
    reply.message = message
    return encode_frame(command)


def send_error(producer_id: int, sequence_id: int, code: ServerError, message: str) -> bytes:
    """Report that the entry is not stored. Most codes make clients reconnect and resend."""
    command = BaseCommand(type=CommandType.SEND_ERROR)
    reply = command.send_error
    reply.producer_id = producer_id
    reply.sequence_id = sequence_id
    reply.error = code
    reply.message = message
    return encode_frame(command)


def close_producer(producer_id: int, request_id: int = NO_REQUEST) -> bytes:
    """Ask a client to create its producer again. Clients before version 5 do not know this."""
    command = BaseCommand(type=CommandType.CLOSE_PRODUCER)
    command.close_producer.producer_id = producer_id
    command.close_producer.request_id = request_id
    return encode_frame(command)


def close_consumer(consumer_id: int, request_id: int = NO_REQUEST) -> bytes:
    """Ask a client to subscribe again. Clients before version 5 do not know this."""
    command = BaseCommand(type=CommandType.CLOSE_CONSUMER)
    command.close_consumer.consumer_id = consumer_id
    command.close_consumer.request_id = request_id
    return encode_frame(command)


def ack_response(
    consumer_id: int, request_id: int, code: ServerError | None = None, message: str = ""
) -> bytes:
    """Report that an ACK with a request id is stored, or failed with ``code``."""
    command = BaseCommand(type=CommandType.ACK_RESPONSE)
    reply = command.ackResponse
    reply.consumer_id = consumer_id
    reply.request_id = request_id
    if code is not None:
        reply.error = code
        reply.message = message
    return encode_frame(command)


def active_consumer_change(consumer_id: int, *, is_active: bool) -> bytes:
    """Report to a Failover consumer whether it is active. Clients before version 12 do not know
    this."""
    command = BaseCommand(type=CommandType.ACTIVE_CONSUMER_CHANGE)
    command.active_consumer_change.consumer_id = consumer_id
    command.active_consumer_change.is_active = is_active
    return encode_frame(command)


def reached_end_of_topic(consumer_id: int) -> bytes:
    """Report to a consumer that its topic is terminated and has nothing more for it. Many clients
    close their connection on this: see :attr:`headgate.wire.peer.Peer.knows_end_of_topic`."""
    command = BaseCommand(type=CommandType.REACHED_END_OF_TOPIC)
    command.reachedEndOfTopic.consumer_id = consumer_id
    return encode_frame(command)


def last_message_id(
    request_id: int,
    last: Position,
    *,
    partition: int = -1,
    batch_index: int = -1,
    mark_delete: Position | None = None,
) -> bytes:
    """Report the topic's last entry, (-1, -1) without one, and the mark-delete position.

    ``batch_index`` is that of the last message in the entry, -1 if the entry is not a batch.
    Clients compare ``last`` with ``mark_delete`` to see whether messages are left.
    """
    command = BaseCommand(type=CommandType.GET_LAST_MESSAGE_ID_RESPONSE)
    reply = command.getLastMessageIdResponse
    reply.request_id = request_id
    last_id = message_id_of(last, partition=partition, batch_index=batch_index)
    reply.last_message_id.CopyFrom(last_id)
    if mark_delete is not None:
        reply.consumer_mark_delete_position.CopyFrom(message_id_of(mark_delete))
    return encode_frame(command)


def consumer_stats(
    request_id: int,
    *,
    name: str,
    kind: str,
    address: str,
    connected_since: str,
    permits: int,
    unacked_messages: int,
    is_blocked: bool,
    backlog_entries: int,
    rates: Sequence[float],
) -> bytes:
    """Report the statistics of a consumer, and the backlog of its subscription in entries.

    ``kind`` is the subscription's type as Pulsar writes it. ``rates`` a second: messages and bytes
    delivered, messages redelivered and acknowledged, messages of the subscription that expired.
    """
    command = BaseCommand(type=CommandType.CONSUMER_STATS_RESPONSE)
    reply = command.consumerStatsResponse
    reply.request_id = request_id
    reply.consumerName = name
    reply.type = kind
    reply.address = address
    reply.connectedSince = connected_since
    reply.availablePermits = to_unsigned(permits)
    reply.unackedMessages = to_unsigned(unacked_messages)
    reply.blockedConsumerOnUnackedMsgs = is_blocked
    reply.msgBacklog = backlog_entries
    (
        reply.msgRateOut,
        reply.msgThroughputOut,
        reply.msgRateRedeliver,
        reply.messageAckRate,
        reply.msgRateExpired,
    ) = rates
    return encode_frame(command)
