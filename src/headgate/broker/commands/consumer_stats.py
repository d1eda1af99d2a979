"""Answers CONSUMER_STATS."""

from __future__ import annotations

from headgate.base.instants import iso_time
from headgate.broker.connection.client_connection import ClientConnection
from headgate.engine.errors import ConsumerNotFoundError
from headgate.wire import encode
from headgate.wire.messages import BaseCommand


def consumer_stats(connection: ClientConnection, command: BaseCommand) -> None:
    """Answer with the statistics of one of the connection's consumers."""
    request = command.consumerStats
    connected = connection.consumers.get(request.consumer_id)
    if connected is None:
        error = ConsumerNotFoundError(f"Consumer {request.consumer_id} not found")
        connection.refuse(command, error)
        return
    consumer, subscription = connected
    now_ns = subscription.topic.engine.now_ns
    rate, throughput, acked, redelivered = consumer.rates.per_second(consumer.counters(), now_ns)
    *_, expired = subscription.current_rates()
    frame = encode.consumer_stats(
        request.request_id,
        name=consumer.name,
        kind=subscription.type.label,
        address=consumer.address,
        connected_since=iso_time(consumer.connected_ms),
        permits=consumer.permits,
        unacked_messages=consumer.unacked_messages,
        is_blocked=consumer.blocked_on_unacked,
        backlog_entries=subscription.backlog_entries,
        rates=(rate, throughput, redelivered, acked, expired),
    )
    connection.write(frame)
