"""The numbers of ``GET /metrics``, read from the engine.

Each function gives the values of one group of :mod:`.series`, in its order.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from headgate.base.park_cause import ParkCause
from headgate.base.sliced import Sliced
from headgate.base.units import MS_PER_S
from headgate.engine.dispatch_shared import SharedDispatcher

if TYPE_CHECKING:
    from headgate.broker.connection.connection import Connection
    from headgate.broker.info import BrokerCounts
    from headgate.engine.engine import Engine
    from headgate.engine.subscription import Subscription
    from headgate.engine.topic import Topic

Number = int | float


@dataclass(slots=True)
class Totals:
    """Sums over the broker, gathered while its topics are walked."""

    topics: int = 0
    subscriptions: int = 0
    producers: int = 0
    consumers: int = 0
    rate_in: float = 0.0
    rate_out: float = 0.0
    throughput_in: float = 0.0
    throughput_out: float = 0.0
    in_bytes: list[int] = field(default_factory=lambda: [0, 0])
    """Of users' topics, and of the broker's own."""
    out_bytes: list[int] = field(default_factory=lambda: [0, 0])
    storage_bytes: int = 0
    write_rate: float = 0.0
    """Entries a second."""
    read_rate: float = 0.0
    backlog_entries: int = 0
    topics_by_namespace: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))


def broker_values(
    counts: BrokerCounts,
    connections: Collection[Connection],
    lookups_pending: int,
    engine: Engine,
    totals: Totals,
) -> list[tuple[Number, ...]]:
    """Values of :data:`BROKER_SERIES`: one of each, or one for each value of a series' own label
    (``system_topic``, ``system_subscription``)."""
    return [
        (1.0,),
        (totals.topics,),
        (totals.subscriptions,),
        (totals.producers,),
        (totals.consumers,),
        (totals.rate_in,),
        (totals.rate_out,),
        (totals.throughput_in,),
        (totals.throughput_out,),
        tuple(totals.in_bytes),
        tuple(totals.out_bytes),
        (totals.storage_bytes,),
        (totals.storage_bytes,),
        (totals.write_rate,),
        (totals.read_rate,),
        (totals.read_rate,),
        (totals.backlog_entries,),
        (sum(c.throttle.is_by(ParkCause.PENDING_LIMIT) for c in connections),),
        (counts.lookups_answered,),
        (counts.lookups_failed,),
        (lookups_pending,),
        (len(connections),),
        (counts.connections_accepted,),
        (counts.connections_established,),
        (counts.connections_failed,),
        (counts.connections_closed,),
        (counts.delays_ignored,),
        (counts.delays_refused,),
        (counts.unauthorized,),
        (engine.duplicates_dropped,),
        (engine.delays.held_bytes,),
        (engine.partials.held_bytes,),
    ]


SUBSCRIPTIONS_PER_YIELD: Final = 4
"""Subscriptions whose figures are read between two yields: 25 us."""


def topic_values(topic: Topic, totals: Totals) -> Sliced[tuple[Number, ...]]:
    """Values of :data:`TOPIC_SERIES`, which are added to ``totals`` as well. Yields while it looks
    at the subscriptions."""
    rate_out = throughput_out = 0.0
    consumers = backlog_entries = backlog_bytes = 0
    delayed_index_bytes = 0
    bytes_out = topic.bytes_out_removed
    oldest_ms = math.inf
    subscriptions = list(topic.subscriptions.values())
    for place, subscription in enumerate(subscriptions, start=1):
        rates = subscription.current_rates()
        rate_out += rates[0]
        throughput_out += rates[1]
        consumers += len(subscription.consumers)
        backlog_entries += subscription.backlog_entries
        bytes_out += subscription.bytes_sent
        delayed_index_bytes += subscription.delayed_index_bytes
        if subscription.is_durable:
            backlog_bytes = max(backlog_bytes, subscription.backlog_bytes)
            received_ms = subscription.oldest_unacked_ms()
            oldest_ms = min(oldest_ms, math.inf if received_ms is None else received_ms)
        if place % SUBSCRIPTIONS_PER_YIELD == 0:
            yield
    rate_in, throughput_in, write_rate, read_rate = topic.current_rates()
    storage_bytes, bytes_in = topic.storage_bytes(), topic.bytes_in()
    totals.topics += 1
    totals.subscriptions += len(subscriptions)
    totals.producers += len(topic.producers)
    totals.consumers += consumers
    totals.rate_in += rate_in
    totals.rate_out += rate_out
    totals.throughput_in += throughput_in
    totals.throughput_out += throughput_out
    totals.in_bytes[topic.is_system] += bytes_in
    totals.out_bytes[topic.is_system] += bytes_out
    totals.storage_bytes += storage_bytes
    totals.write_rate += write_rate
    totals.read_rate += read_rate
    totals.backlog_entries += backlog_entries
    return (
        len(subscriptions),
        len(topic.producers),
        consumers,
        rate_in,
        rate_out,
        throughput_in,
        throughput_out,
        topic.messages_in(),
        bytes_in,
        throughput_in / rate_in if rate_in else 0.0,
        backlog_entries,
        storage_bytes,
        storage_bytes,
        backlog_bytes,
        -1 if oldest_ms == math.inf else max(0, topic.log_ms - int(oldest_ms)) // MS_PER_S,
        write_rate,
        read_rate,
        read_rate,
        topic.publishing.throttled_count,
        delayed_index_bytes,
    )


def topic_backlog_age_s(topic: Topic) -> int:
    """Age of the oldest message that a durable subscription has not acknowledged, in seconds; -1
    without backlog."""
    oldest = topic.oldest_unacked()
    return -1 if oldest is None else max(0, topic.log_ms - oldest[0]) // MS_PER_S


def write_values(topic: Topic) -> list[Number]:
    """Values of :data:`WRITE_SERIES`."""
    figures = topic.publishing.writes_last_minute()
    entries = figures.entries
    return [
        *figures.latency,
        entries,
        figures.latency_us,
        *figures.storage,
        entries,
        figures.storage_us,
        *figures.sizes,
        entries,
        figures.size_bytes,
    ]


def subscription_values(subscription: Subscription) -> tuple[Number, ...]:
    """Values of :data:`SUBSCRIPTION_SERIES`."""
    dispatcher = subscription.dispatcher
    delayed = dispatcher.delayed
    delayed_entries = 0 if delayed is None else delayed.not_due.entries
    blocked = isinstance(dispatcher, SharedDispatcher) and dispatcher.blocked_on_unacked
    return (
        subscription.backlog_entries,
        subscription.backlog_entries - delayed_entries,
        delayed_entries,
        subscription.delayed_index_bytes,
        dispatcher.to_redeliver().messages,
        dispatcher.in_flight_messages(),
        int(blocked),
        len(subscription.consumers),
        *subscription.current_rates(),
        subscription.expired_messages,
        subscription.messages_sent,
        subscription.bytes_sent,
        subscription.last_expire_ms,
        subscription.last_acked_ms,
        subscription.last_flow_ms,
        subscription.last_sent_ms,
        subscription.last_mark_delete_ms,
    )


def backlog_age_s(subscription: Subscription) -> int | None:
    """Age of the oldest message that a durable subscription has not acknowledged, in seconds; None
    for other subscriptions, and without backlog."""
    age_ms = subscription.oldest_age_ms() if subscription.is_durable else None
    return None if age_ms is None else age_ms // MS_PER_S
