"""Each frame of a client, read back with the generated classes."""

from __future__ import annotations

from headgate.base.positions import EARLIEST, Position
from headgate.wire import client
from headgate.wire.codes import (
    AckType,
    InitialPosition,
    ProducerAccessMode,
    SchemaType,
    SubscriptionType,
    TopicListMode,
)
from headgate.wire.frame import FrameDecoder
from headgate.wire.ids import position_of
from headgate.wire.messages import BaseCommand, Schema


def read(frame: bytes) -> tuple[BaseCommand, bytes | None]:
    decoder = FrameDecoder()
    decoder.feed(frame)
    decoded = decoder.next_frame()
    assert decoded is not None
    return decoded


def test_connect() -> None:
    assert read(client.connect())[0].connect.protocol_version == 21


def test_connect_with_credentials() -> None:
    frame = client.connect(
        auth_method="token",
        auth_data=b"t",
        refreshes_credentials=True,
        original_principal="ann",
        original_auth_method="basic",
        original_auth_data="ann:x",
    )
    asked = read(frame)[0].connect
    assert (asked.auth_method_name, asked.auth_data) == ("token", b"t")
    assert asked.feature_flags.supports_auth_refresh
    assert (asked.original_principal, asked.original_auth_method) == ("ann", "basic")
    assert asked.original_auth_data == "ann:x"
    response = read(client.auth_response("token", b"u"))[0].authResponse.response
    assert (response.auth_method_name, response.auth_data) == ("token", b"u")


def test_finding_topics() -> None:
    asked = read(client.partitioned_metadata(1, "t", auto_creation=False))[0].partitionMetadata
    assert (asked.request_id, asked.topic, asked.metadata_auto_creation_enabled) == (1, "t", False)
    assert read(client.lookup(1, "t", authoritative=True))[0].lookupTopic.authoritative
    listed = read(client.get_topics_of_namespace(1, "a/b", TopicListMode.ALL))[0]
    assert listed.getTopicsOfNamespace.mode == TopicListMode.ALL


def test_producer() -> None:
    unnamed = read(client.producer(1, 2, "t"))[0].producer
    assert not unnamed.HasField("producer_name")
    assert not unnamed.user_provided_producer_name
    mode = ProducerAccessMode.EXCLUSIVE
    named = read(client.producer(1, 2, "t", name="p", epoch=3, access_mode=mode))[0].producer
    assert (named.producer_name, named.epoch, named.producer_access_mode) == ("p", 3, mode)
    assert read(client.close_producer(1, 2))[0].close_producer.producer_id == 2


def test_schemas() -> None:
    schema = Schema(name="s", type=SchemaType.AVRO, schema_data=b"{}")
    asked = read(client.get_schema(1, "t"))[0].getSchema
    assert (asked.request_id, asked.topic, asked.HasField("schema_version")) == (1, "t", False)
    assert read(client.get_schema(1, "t", bytes(8)))[0].getSchema.schema_version == bytes(8)
    told = read(client.get_or_create_schema(1, "t", schema))[0].getOrCreateSchema
    assert (told.request_id, told.topic, told.schema) == (1, "t", schema)
    assert read(client.producer(1, 2, "t", schema=schema))[0].producer.schema == schema
    assert read(client.subscribe(1, 2, "t", "s", schema=schema))[0].subscribe.schema == schema


def test_send() -> None:
    command, body = read(client.send(1, 2, b"body"))
    assert (command.send.producer_id, command.send.sequence_id, body) == (1, 2, b"body")
    assert not command.send.HasField("num_messages")
    assert read(client.send(1, 2, b"body", message_count=1))[0].send.HasField("num_messages")
    head = client.send_head(1, 2, 1, message_count=4, highest_sequence_id=5, is_chunk=True)
    sent = read(head + b"x")[0].send
    assert (sent.num_messages, sent.highest_sequence_id, sent.is_chunk) == (4, 5, True)


def test_subscribe() -> None:
    asked = read(client.subscribe(1, 2, "t", "s"))[0].subscribe
    assert (asked.request_id, asked.consumer_id, asked.durable) == (1, 2, True)
    frame = client.subscribe(
        1,
        2,
        "t",
        "s",
        kind=SubscriptionType.FAILOVER,
        initial_position=InitialPosition.EARLIEST,
        consumer_name="c",
        priority_level=1,
        durable=False,
        start=EARLIEST,
        properties={"k": "v"},
    )
    asked = read(frame)[0].subscribe
    assert (asked.subType, asked.initialPosition, asked.consumer_name) == (2, 1, "c")
    assert position_of(asked.start_message_id) == EARLIEST
    assert asked.subscription_properties[0].key == "k"


def test_flow_and_acks() -> None:
    assert read(client.flow(1, 1000))[0].flow.messagePermits == 1000
    told = read(client.ack(1, [Position(1, 2), Position(1, 3)]))[0].ack
    assert [position_of(message_id).entry_id for message_id in told.message_id] == [2, 3]
    assert not told.HasField("request_id")
    kind = AckType.CUMULATIVE
    told = read(client.ack(1, [Position(1, 2)], kind, request_id=9, ack_set=[-1]))[0].ack
    assert (told.ack_type, told.request_id, list(told.message_id[0].ack_set)) == (1, 9, [-1])


def test_the_rest_of_a_consumer() -> None:
    again = read(client.redeliver(1, [Position(1, 2)], consumer_epoch=3))[0]
    assert again.redeliverUnacknowledgedMessages.consumer_epoch == 3
    assert not read(client.redeliver(1))[0].redeliverUnacknowledgedMessages.message_ids
    assert read(client.unsubscribe(1, 2, force=True))[0].unsubscribe.force
    assert position_of(read(client.seek(1, 2, position=EARLIEST))[0].seek.message_id) == EARLIEST
    assert read(client.seek(1, 2, publish_time_ms=5))[0].seek.message_publish_time == 5
    assert read(client.get_last_message_id(1, 2))[0].getLastMessageId.consumer_id == 2
    assert read(client.close_consumer(1, 2))[0].close_consumer.consumer_id == 2
