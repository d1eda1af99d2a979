"""ACK: what a consumer is done with, and the answer when that is durable.

An acknowledgement can only ever take away what is there: ids that are not stored, of this topic or
any other, acknowledge nothing.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from headgate.engine.consumer import Consumer
from headgate.engine.subscription import Subscription
from headgate.wire import encode
from headgate.wire.codes import AckType, ServerError
from headgate.wire.ids import to_signed
from headgate.wire.messages import BaseCommand, CommandAck, MessageIdData

if TYPE_CHECKING:
    from headgate.broker.connection import Connection


def acknowledge(connection: Connection, command: BaseCommand) -> None:
    """Carry out an ACK; one of a consumer that is gone comes too late and changes nothing."""
    ack = command.ack
    entry = connection.consumers.get(ack.consumer_id)
    if entry is None:
        if ack.HasField("request_id"):
            problem = f"Consumer {ack.consumer_id} does not exist on this connection"
            _refuse(connection, ack, ServerError.CONSUMER_NOT_FOUND, problem)
        return
    consumer, subscription = entry
    problem = ""
    if ack.ack_type == AckType.CUMULATIVE:
        problem = _ack_through(consumer, subscription, ack)
    else:
        _ack_entries(consumer, subscription, ack)
    if not ack.HasField("request_id"):
        return
    if problem:
        _refuse(connection, ack, ServerError.NOT_ALLOWED_ERROR, problem)
    else:
        _answer_when_durable(connection, ack)


def _ack_entries(consumer: Consumer, subscription: Subscription, ack: CommandAck) -> None:
    log = subscription.topic.log
    for ids in ack.message_id:
        if _is_part_of_a_batch(ids):
            continue  # the client acknowledges the entry when it is done with all of it
        position = (to_signed(ids.ledgerId), to_signed(ids.entryId))
        ordinal = log.ordinal_at_or_after(*position)
        if ordinal < log.end and log.position(ordinal) == position:
            subscription.ack_entry(consumer, ordinal)


def _ack_through(consumer: Consumer, subscription: Subscription, ack: CommandAck) -> str:
    """Acknowledge up to one entry; returns why not, if so."""
    if len(ack.message_id) != 1 or subscription.type.is_shared:
        return "A cumulative acknowledgement names one message of an unshared subscription"
    ids = ack.message_id[0]
    log = subscription.topic.log
    position = (to_signed(ids.ledgerId), to_signed(ids.entryId))
    ordinal = log.ordinal_at_or_after(*position)
    if ordinal == log.end and position >= log.position(log.end):
        # Of another topic, most likely: taken at its word it would give up the whole backlog.
        return f"{position[0]}:{position[1]} is not stored yet: nothing was acknowledged"
    if _is_part_of_a_batch(ids) or ordinal == log.end or log.position(ordinal) != position:
        ordinal -= 1
    subscription.ack_through(consumer, ordinal)
    return ""


def _is_part_of_a_batch(ids: MessageIdData) -> bool:
    """Whether messages of the entry are still to be done: those whose bit is set."""
    return any(ids.ack_set)


def _refuse(connection: Connection, ack: CommandAck, code: ServerError, problem: str) -> None:
    connection.write(encode.ack_response(ack.consumer_id, ack.request_id, code, problem))


def _answer_when_durable(connection: Connection, ack: CommandAck) -> None:
    consumer_id, request_id = ack.consumer_id, ack.request_id

    def stored(future: asyncio.Future[None]) -> None:
        error = future.exception()
        if error is None:
            connection.write(encode.ack_response(consumer_id, request_id))
        else:
            code = ServerError.PERSISTENCE_ERROR
            connection.write(encode.ack_response(consumer_id, request_id, code, str(error)))

    connection.broker.committer.durable().add_done_callback(stored)
