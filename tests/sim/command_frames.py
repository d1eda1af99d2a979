"""A valid frame of every command that a client may send, about given ids."""

from __future__ import annotations

import random
from typing import NamedTuple

from headgate.base.positions import Position
from headgate.wire import client as frames
from headgate.wire.codes import CommandType, SchemaType, SubscriptionType
from headgate.wire.commands import COMMANDS
from headgate.wire.entry import build_entry
from headgate.wire.frame import FIELD_OF_TYPE, encode_frame
from headgate.wire.messages import BaseCommand, MessageMetadata, Schema
from tests.unit.broker.connection.test_connection_fuzz import fill

ENTRY = build_entry(MessageMetadata(producer_name="p", sequence_id=1, publish_time=1), b"x" * 20)


class About(NamedTuple):
    """What the commands are about."""

    topic: str
    subscription: str
    producer_id: int
    consumer_id: int
    position: Position


def every_command(about: About, request_id: int = 100) -> dict[CommandType, bytes]:
    """A frame of each, also of commands that are not built."""
    topic, subscription, producer, consumer, position = about
    made = {
        CommandType.CONNECT: frames.connect(),
        CommandType.PING: frames.ping(),
        CommandType.PONG: frames.pong(),
        CommandType.PARTITIONED_METADATA: frames.partitioned_metadata(request_id, topic),
        CommandType.LOOKUP: frames.lookup(request_id + 1, topic),
        CommandType.GET_TOPICS_OF_NAMESPACE: frames.get_topics_of_namespace(
            request_id + 2, "public/default"
        ),
        CommandType.PRODUCER: frames.producer(request_id + 3, producer, topic, name="mine"),
        CommandType.SEND: frames.send(producer, 0, ENTRY),
        CommandType.CLOSE_PRODUCER: frames.close_producer(request_id + 4, producer),
        CommandType.SUBSCRIBE: frames.subscribe(
            request_id + 5, consumer, topic, subscription, kind=SubscriptionType.EXCLUSIVE
        ),
        CommandType.FLOW: frames.flow(consumer, 1_000),
        CommandType.ACK: frames.ack(consumer, [position], request_id=request_id + 6),
        CommandType.REDELIVER_UNACKNOWLEDGED_MESSAGES: frames.redeliver(consumer, [position]),
        CommandType.GET_LAST_MESSAGE_ID: frames.get_last_message_id(request_id + 7, consumer),
        CommandType.CLOSE_CONSUMER: frames.close_consumer(request_id + 8, consumer),
        CommandType.UNSUBSCRIBE: frames.unsubscribe(request_id + 9, consumer, force=True),
        CommandType.SEEK: frames.seek(request_id + 10, consumer, position=position),
        CommandType.GET_SCHEMA: frames.get_schema(request_id + 11, topic),
        CommandType.GET_OR_CREATE_SCHEMA: frames.get_or_create_schema(
            request_id + 12, topic, Schema(name="", type=SchemaType.STRING, schema_data=b"")
        ),
        CommandType.CONSUMER_STATS: frames.consumer_stats(request_id + 13, consumer),
        CommandType.WATCH_TOPIC_LIST: frames.watch_topic_list(
            request_id + 14, 1, "public/default", ".*"
        ),
        CommandType.WATCH_TOPIC_LIST_CLOSE: frames.watch_topic_list_close(request_id + 15, 1),
    }
    chance = random.Random(1)
    for kind in COMMANDS:
        if kind not in made:
            command = BaseCommand(type=kind)
            inner = getattr(command, FIELD_OF_TYPE[kind])
            inner.SetInParent()
            fill(inner, chance)
            made[CommandType(kind)] = encode_frame(command)
    return made
