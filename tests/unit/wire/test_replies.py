"""Each cold reply, read back with the generated classes."""

from __future__ import annotations

import pytest

from headgate.base.positions import EARLIEST, Position
from headgate.wire import encode
from headgate.wire.codes import CommandType, ServerError
from headgate.wire.frame import FrameDecoder
from headgate.wire.ids import NO_REQUEST, position_of
from headgate.wire.messages import BaseCommand, Schema


def read(frame: bytes) -> BaseCommand:
    decoder = FrameDecoder()
    decoder.feed(frame)
    decoded = decoder.next_frame()
    assert decoded is not None
    assert decoder.next_frame() is None
    assert decoded[1] is None
    return decoded[0]


def test_connected_claims_only_what_is_built() -> None:
    frame = encode.connected(protocol_version=20, message_bytes_max=100, server_version="h 1")
    reply = read(frame).connected
    assert (reply.server_version, reply.protocol_version) == ("h 1", 20)
    assert reply.max_message_size == 100
    claimed = [field.name for field, value in reply.feature_flags.ListFields() if value]
    assert claimed == ["supports_get_partitioned_metadata_without_auto_creation"]


def test_a_challenge_asks_for_new_credentials() -> None:
    frame = encode.auth_challenge("token", protocol_version=20, server_version="h 1")
    reply = read(frame).authChallenge
    assert (reply.server_version, reply.protocol_version) == ("h 1", 20)
    assert (reply.challenge.auth_method_name, reply.challenge.auth_data) == (
        "token",
        b"PulsarAuthRefresh",
    )


def test_success_and_error() -> None:
    assert read(encode.success(5)).success.request_id == 5
    reply = read(encode.error(NO_REQUEST, ServerError.CONSUMER_BUSY, "busy")).error
    assert (reply.request_id, reply.error, reply.message) == (2**64 - 1, 5, "busy")


def test_producer_success() -> None:
    reply = read(encode.producer_success(1, producer_name="p")).producer_success
    assert (reply.request_id, reply.producer_name, reply.last_sequence_id) == (1, "p", -1)
    assert reply.producer_ready
    assert reply.HasField("schema_version")
    assert not reply.HasField("topic_epoch")
    waiting = encode.producer_success(1, producer_name="p", topic_epoch=0, ready=False)
    assert not read(waiting).producer_success.producer_ready
    assert read(waiting).producer_success.HasField("topic_epoch")


def test_lookup() -> None:
    reply = read(encode.lookup_connect(1, broker_url="pulsar://a:1")).lookupTopicResponse
    assert (reply.response, reply.authoritative, reply.brokerServiceUrl) == (
        1,
        True,
        "pulsar://a:1",
    )
    assert not reply.HasField("brokerServiceUrlTls")
    both = encode.lookup_connect(1, broker_url="a", broker_url_tls="b", through_service_url=True)
    assert read(both).lookupTopicResponse.brokerServiceUrlTls == "b"
    assert read(both).lookupTopicResponse.proxy_through_service_url
    failed = encode.lookup_failed(1, ServerError.METADATA_ERROR, "why")
    reply = read(failed).lookupTopicResponse
    assert (reply.request_id, reply.response, reply.error, reply.message) == (1, 2, 1, "why")


def test_partition_metadata() -> None:
    reply = read(encode.partition_metadata(1, 0)).partitionMetadataResponse
    assert (reply.response, reply.partitions, reply.HasField("partitions")) == (0, 0, True)
    failed = encode.partition_metadata_failed(1, ServerError.TOPIC_NOT_FOUND, "why")
    reply = read(failed).partitionMetadataResponse
    assert (reply.request_id, reply.response, reply.error, reply.message) == (1, 1, 11, "why")


def test_send_error() -> None:
    reply = read(encode.send_error(1, 2, ServerError.CHECKSUM_ERROR, "why")).send_error
    assert (reply.producer_id, reply.sequence_id, reply.error, reply.message) == (1, 2, 9, "why")


def test_close() -> None:
    assert read(encode.close_producer(1)).close_producer.request_id == NO_REQUEST
    assert read(encode.close_consumer(1, 7)).close_consumer.request_id == 7


def test_ack_response() -> None:
    reply = read(encode.ack_response(1, 2)).ackResponse
    assert (reply.consumer_id, reply.request_id, reply.HasField("error")) == (1, 2, False)
    failed = read(encode.ack_response(1, 2, ServerError.UNKNOWN_ERROR, "why")).ackResponse
    assert (failed.HasField("error"), failed.message) == (True, "why")


@pytest.mark.parametrize("active", [True, False])
def test_active_consumer_change(active: bool) -> None:
    reply = read(encode.active_consumer_change(3, is_active=active)).active_consumer_change
    assert (reply.consumer_id, reply.is_active) == (3, active)


def test_the_end_of_a_topic() -> None:
    assert read(encode.reached_end_of_topic(3)).reachedEndOfTopic.consumer_id == 3


def test_last_message_id() -> None:
    reply = read(encode.last_message_id(1, EARLIEST)).getLastMessageIdResponse
    assert position_of(reply.last_message_id) == EARLIEST
    assert not reply.HasField("consumer_mark_delete_position")
    frame = encode.last_message_id(
        1, Position(3, 4), partition=2, batch_index=5, mark_delete=Position(3, 1)
    )
    reply = read(frame).getLastMessageIdResponse
    assert (reply.last_message_id.partition, reply.last_message_id.batch_index) == (2, 5)
    assert position_of(reply.consumer_mark_delete_position) == Position(3, 1)


def test_topics_of_namespace() -> None:
    reply = read(encode.topics_of_namespace(1, ["a", "b"])).getTopicsOfNamespaceResponse
    assert (list(reply.topics), reply.changed, reply.filtered) == (["a", "b"], True, False)
    same = encode.topics_of_namespace(1, [], topics_hash="h", changed=False)
    assert read(same).getTopicsOfNamespaceResponse.topics_hash == "h"


def test_topics_of_namespace_in_parts_are_the_same_message() -> None:
    names = [f"persistent://a/b/{number}" for number in range(500)]
    parts = [
        encode.topic_names(names[:200]),
        encode.topic_names([]),
        encode.topic_names(names[200:]),
    ]
    frame = encode.topics_of_namespace_in_parts(7, parts)
    whole = encode.topics_of_namespace(7, names)
    assert len(frame) == len(whole)
    assert read(frame) == read(whole)


def test_every_reply_has_the_type_of_its_field() -> None:
    assert read(encode.ping()).type == CommandType.PING
    assert read(encode.pong()).type == CommandType.PONG


def test_a_schema_is_what_the_generated_classes_make() -> None:
    for size in (0, 1, 127, 20_000):
        found = Schema(name="t", type=Schema.Type.Avro, schema_data=b"x" * size)
        found.properties.add(key="k", value="v")
        command = BaseCommand(type=CommandType.GET_SCHEMA_RESPONSE)
        command.getSchemaResponse.request_id = 300
        command.getSchemaResponse.schema.CopyFrom(found)
        command.getSchemaResponse.schema_version = b"12345678"
        assert read(encode.schema(300, found.SerializeToString(), b"12345678")) == command
