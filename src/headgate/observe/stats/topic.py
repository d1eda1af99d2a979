"""Statistics of a live topic in Pulsar's shape, read off the engine's objects at one instant.

Pulsar's fields mean what Pulsar's mean, with three differences, each more exact: rates cover the
last 5 to 10 seconds instead of the last full minute, backlogs are counted instead of estimated, and
the oldest message is looked up now instead of at the last quota check. Messages are dated by the
broker's clock at their arrival. The object ``headgate`` has what Pulsar has no field for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec import UNSET

from headgate.base.instants import iso_time
from headgate.base.sliced import Sliced
from headgate.base.units import MS_PER_S, NS_PER_MS, NS_PER_S, safe_sum
from headgate.engine.consumer import Consumer
from headgate.engine.dispatch_shared import SharedDispatcher
from headgate.engine.dispatch_single import SingleActiveDispatcher
from headgate.engine.producer import Producer
from headgate.engine.subscription import Subscription
from headgate.engine.topic import Topic
from headgate.explain.states import ParkedState
from headgate.flow.account.account import LABELS
from headgate.flow.limits.precedence import EffectiveLimit
from headgate.flow.limits.rate_limit import Dimension, Level
from headgate.flow.quota.backlog_quota import Quotas
from headgate.observe.states.parked import ParkedStates
from headgate.observe.states.quotas import quota_states
from headgate.observe.stats.fields import (
    ConsumerStats,
    PublisherStats,
    StatsOptions,
    SubscriptionStats,
    TopicStats,
)
from headgate.policy.current_limits import CurrentDispatchLimits, CurrentPublishLimits

CLIENTS_PER_YIELD = 4
"""Producers or consumers that are looked at between two yields."""

_LEVELS = tuple(level.name.lower() for level in Level)


class TopicStatsReader:
    """Reads the statistics of topics."""

    def __init__(
        self,
        limits: CurrentDispatchLimits,
        publish_limits: CurrentPublishLimits,
        quotas: Callable[[Topic], Quotas],
        parked: ParkedStates,
        owner: str,
    ) -> None:
        """``quotas`` gives the quotas of a topic, ``parked`` its waiting messages. ``owner`` is the
        broker's id."""
        self._limits = limits
        self._publish_limits = publish_limits
        self._quotas = quotas
        self._parked = parked
        self._owner = owner

    def read(self, topic: Topic, options: StatsOptions, *, skew_ms: int) -> Sliced[TopicStats]:
        """Counters, rates, producers and subscriptions of a live topic, each when its turn comes.

        Counters of messages begin at the topic's load, as Pulsar's do. ``skew_ms``: how far the
        wall clock is ahead of the time of the log, which dates messages.
        """
        shared_limits = self._limits.shared_limits_of(topic)
        subscriptions = {}
        found, sums = _Backlogs(), _SubscriptionSums(topic)
        for name, subscription in list(topic.subscriptions.items()):
            if not subscription.removed:
                shown_stats = subscription_stats(
                    self._limits, subscription, options, shared_limits, skew_ms=skew_ms
                )
                found.add(subscription)
                sums.add(shown_stats)
                if not options.exclude_consumers:
                    for consumer in list(subscription.consumers):
                        shown_consumer = consumer_stats(consumer, topic.now_ns)
                        shown_consumer.headgate = _own_consumer_fields(topic, consumer)
                        shown_stats.consumers.append(shown_consumer)
                        if len(shown_stats.consumers) % CLIENTS_PER_YIELD == 0:
                            yield
                subscriptions[name] = shown_stats
            else:
                sums.add_removed(subscription)
            yield
        publishers = [] if options.exclude_publishers else (yield from _publishers(topic))
        parked = yield from self._parked.states([topic])
        rate_in, throughput_in, *_ = topic.current_rates()
        oldest = found.oldest
        stats = TopicStats(
            msg_rate_in=rate_in,
            msg_throughput_in=throughput_in,
            msg_rate_out=sums.rate_out,
            msg_throughput_out=sums.throughput_out,
            bytes_in_counter=topic.bytes_in(),
            msg_in_counter=topic.messages_in(),
            bytes_out_counter=sums.bytes_out,
            msg_out_counter=sums.messages_out,
            average_msg_size=throughput_in / rate_in if rate_in else 0.0,
            msg_chunk_published=any(p.chunks_published for p in topic.producers.values()),
            storage_size=topic.storage_bytes(),
            publish_rate_limited_times=topic.publishing.throttled_count,
            backlog_size=found.bytes,
            publishers=publishers,
            subscriptions=subscriptions,
            deduplication_status="Disabled" if topic.log.sequences is None else "Enabled",
            non_contiguous_deleted_messages_ranges=sums.ranges,
            delayed_message_index_size_in_bytes=sums.delayed_index_bytes,
            owner_broker=self._owner,
            topic_creation_time_stamp=topic.created_ms,
            last_publish_time_stamp=_last_publish_ms(topic, skew_ms),
            headgate=self._own_fields(topic, shared_limits, found, parked),
        )
        if topic.access is not None:
            stats.waiting_publishers = topic.access.waiting_count
            if topic.access.epoch is not None:
                stats.topic_epoch = topic.access.epoch
        _show_quotas(stats, self._quotas(topic))
        if oldest is not None:
            stats.oldest_backlog_message_age_seconds = max(topic.log_ms - oldest[0], 0) // MS_PER_S
            stats.oldest_backlog_message_subscription_name = oldest[1]
            if options.earliest_time:
                stats.earliest_msg_publish_time_in_backlogs = oldest[0] + skew_ms
        return stats

    def _own_fields(
        self,
        topic: Topic,
        shared_limits: Sequence[EffectiveLimit],
        found: _Backlogs,
        parked: Sequence[ParkedState],
    ) -> dict[str, Any]:
        return {
            "backlogMessages": found.messages,
            "backlogBytes": found.bytes,
            "oldestAgeSeconds": _age_s(topic, None if found.oldest is None else found.oldest[0]),
            "storage": _storage_fields(topic),
            "publishesPending": topic.publishing.pending_count,
            "duplicatesDropped": topic.publishing.duplicates_dropped,
            "delaysIgnored": topic.delays_ignored,
            "delaysRefused": topic.delays_refused,
            "terminated": topic.terminated,
            "limits": limits_view(dict(zip(_LEVELS[1:], shared_limits, strict=True))),
            "publishLimits": limits_view(
                dict(zip(_LEVELS[1:], self._publish_limits.limits_of(topic), strict=True))
            ),
            "backlogQuotas": msgspec.to_builtins(quota_states([topic])),
            "parked": msgspec.to_builtins(parked),
        }


def _show_quotas(stats: TopicStats, quotas: Quotas) -> None:
    if quotas.size is not None:
        stats.backlog_quota_limit_size = quotas.size.limit
    if quotas.time is not None:
        stats.backlog_quota_limit_time = quotas.time.limit // MS_PER_S


def _last_publish_ms(topic: Topic, skew_ms: int) -> int:
    """When the broker received the last message of a topic, also one that is trimmed; 0 if there
    never was one."""
    end = topic.log.end
    return topic.log.totals_near(end)[0].received_ms + skew_ms if end else 0


class _SubscriptionSums:
    """What a topic's statistics sum over its subscriptions, which are looked at one by one."""

    def __init__(self, topic: Topic) -> None:
        self.rate_out: float = 0
        self.throughput_out: float = 0
        # As of now: what a subscription counts that is removed later is added with itself, once.
        self.bytes_out, self.messages_out = topic.bytes_out_removed, topic.messages_out_removed
        self.ranges = self.delayed_index_bytes = 0

    def add(self, stats: SubscriptionStats) -> None:
        """Add one subscription."""
        self.rate_out += stats.msg_rate_out
        self.throughput_out += stats.msg_throughput_out
        self.bytes_out += stats.bytes_out_counter
        self.messages_out += stats.msg_out_counter
        self.ranges += stats.non_contiguous_deleted_messages_ranges
        self.delayed_index_bytes += stats.delayed_message_index_size_in_bytes

    def add_removed(self, subscription: Subscription) -> None:
        """Add one that was removed before its turn came."""
        self.bytes_out += subscription.bytes_sent
        self.messages_out += subscription.messages_sent


class _Backlogs:
    """The largest backlogs of a topic's durable subscriptions."""

    def __init__(self) -> None:
        self.messages = 0
        self.bytes = 0
        self.oldest: tuple[int, str] | None = None
        """As of :meth:`Topic.oldest_unacked`."""

    def add(self, subscription: Subscription) -> None:
        """Look at a subscription."""
        if not subscription.is_durable:
            return
        self.messages = max(self.messages, subscription.backlog_messages)
        self.bytes = max(self.bytes, subscription.backlog_bytes)
        received_ms = subscription.oldest_unacked_ms()
        if received_ms is not None:
            oldest = received_ms, subscription.name
            self.oldest = oldest if self.oldest is None else min(self.oldest, oldest)


def _storage_fields(topic: Topic) -> dict[str, int]:
    """Bytes of the records that a topic keeps on the disk: those that its slowest durable
    subscription has acknowledged, which retention or an unfinished ledger keeps, and the others."""
    log = topic.log
    mark = topic.first_needed_ordinal()
    acknowledged_bytes = log.live_bytes(log.first, mark)
    waiting_bytes = log.live_bytes(mark, log.end)
    return {
        "heldBytes": acknowledged_bytes + waiting_bytes,
        "waitingBytes": waiting_bytes,
        "acknowledgedBytes": acknowledged_bytes,
    }


def _publishers(topic: Topic) -> Sliced[list[PublisherStats]]:
    publishers: list[PublisherStats] = []
    for _, producer in sorted(topic.producers.items()):
        publishers.append(publisher_stats(producer, topic.now_ns))
        if len(publishers) % CLIENTS_PER_YIELD == 0:
            yield
    return publishers


def publisher_stats(producer: Producer, now_ns: int) -> PublisherStats:
    """One connected producer, now."""
    rate, throughput, chunks = producer.rates.per_second(producer.counters(), now_ns)
    return PublisherStats(
        access_mode=producer.access_mode.label,
        msg_rate_in=rate,
        msg_throughput_in=throughput,
        average_msg_size=throughput / rate if rate else 0.0,
        chunked_message_rate=chunks,
        producer_id=producer.producer_id,
        supports_partial_producer=producer.is_partial,
        producer_name=producer.name,
        address=producer.address or UNSET,
        connected_since=iso_time(producer.connected_ms),
        client_version=producer.client_version or UNSET,
        metadata=producer.metadata,
    )


def consumer_stats(consumer: Consumer, now_ns: int) -> ConsumerStats:
    """One connected consumer, now."""
    rate, throughput, acked, redelivered = consumer.rates.per_second(consumer.counters(), now_ns)
    entries = consumer.entries_sent
    return ConsumerStats(
        msg_rate_out=rate,
        msg_throughput_out=throughput,
        bytes_out_counter=consumer.bytes_sent,
        msg_out_counter=consumer.messages_sent,
        msg_rate_redeliver=redelivered,
        message_ack_rate=acked,
        consumer_name=consumer.name,
        available_permits=consumer.permits,
        unacked_messages=consumer.unacked_messages,
        avg_messages_per_entry=round(consumer.messages_sent / entries) if entries else 0,
        blocked_consumer_on_unacked_msgs=consumer.blocked_on_unacked,
        address=consumer.address or UNSET,
        connected_since=iso_time(consumer.connected_ms),
        client_version=consumer.client_version or UNSET,
        last_acked_timestamp=consumer.last_acked_ms,
        last_consumed_timestamp=consumer.last_sent_ms,
        last_consumed_flow_timestamp=consumer.last_flow_ms,
        metadata=consumer.metadata,
        last_acked_time=iso_time(consumer.last_acked_ms),
        last_consumed_time=iso_time(consumer.last_sent_ms),
    )


def subscription_stats(
    limits: CurrentDispatchLimits,
    subscription: Subscription,
    options: StatsOptions,
    shared_limits: Sequence[EffectiveLimit],
    *,
    skew_ms: int,
) -> SubscriptionStats:
    """One subscription, now, without its consumers. ``unacked_messages`` counts Shared deliveries
    only, as Pulsar's.

    ``shared_limits`` are those of its topic, which the caller looks up once: a relative limit costs
    O(subscriptions). ``skew_ms`` is as in :meth:`TopicStatsReader.read`.
    """
    rate, throughput, acked, redelivered, expired = subscription.current_rates()
    gate, dispatcher = subscription.gate, subscription.dispatcher
    subscription.count_throttling()
    events, throttled = gate.throttled_events, subscription.throttled_dispatch.counts
    of_subscription, of_topic, of_broker = events
    backlog, age_ms = subscription.backlog_entries, subscription.oldest_age_ms()
    delayed = dispatcher.delayed
    delayed_entries = 0 if delayed is None else delayed.not_due.entries
    stats = SubscriptionStats(
        msg_rate_out=rate,
        msg_throughput_out=throughput,
        bytes_out_counter=subscription.bytes_sent,
        msg_out_counter=subscription.messages_sent,
        msg_rate_redeliver=redelivered,
        message_ack_rate=acked,
        msg_backlog=backlog,
        backlog_size=subscription.backlog_bytes if options.backlog_size else -1,
        msg_backlog_no_delayed=backlog - delayed_entries,
        msg_delayed=delayed_entries,
        msg_in_replay=dispatcher.to_redeliver().messages,
        type=subscription.type.label if subscription.type_known else "None",
        msg_rate_expired=expired,
        total_msg_expired=subscription.expired_messages,
        last_expire_timestamp=subscription.last_expire_ms,
        last_consumed_flow_timestamp=subscription.last_flow_ms,
        last_consumed_timestamp=subscription.last_sent_ms,
        last_acked_timestamp=subscription.last_acked_ms,
        last_mark_delete_advanced_timestamp=subscription.last_mark_delete_ms,
        consumers=[],
        is_durable=subscription.is_durable,
        durable=subscription.is_durable,
        non_contiguous_deleted_messages_ranges=subscription.acks.ranges_count,
        delayed_message_index_size_in_bytes=subscription.delayed_index_bytes,
        subscription_properties=subscription.properties,
        dispatch_throttled_msg_events_by_subscription_limit=of_subscription[Dimension.MESSAGES],
        dispatch_throttled_bytes_events_by_subscription_limit=of_subscription[Dimension.BYTES],
        dispatch_throttled_msg_events_by_topic_limit=of_topic[Dimension.MESSAGES],
        dispatch_throttled_bytes_events_by_topic_limit=of_topic[Dimension.BYTES],
        dispatch_throttled_msg_events_by_broker_limit=of_broker[Dimension.MESSAGES],
        dispatch_throttled_bytes_events_by_broker_limit=of_broker[Dimension.BYTES],
        dispatch_throttled_msgs=safe_sum(*(level[Dimension.MESSAGES] for level in throttled)),
        dispatch_throttled_bytes=safe_sum(*(level[Dimension.BYTES] for level in throttled)),
        oldest_backlog_message_age_seconds=-1 if age_ms is None else age_ms // MS_PER_S,
        headgate=_own_subscription_fields(limits, subscription, shared_limits),
    )
    if isinstance(dispatcher, SharedDispatcher):
        stats.unacked_messages = dispatcher.unacked_messages
        stats.blocked_subscription_on_unacked_msgs = dispatcher.blocked_on_unacked
    elif isinstance(dispatcher, SingleActiveDispatcher) and dispatcher.active is not None:
        stats.active_consumer_name = dispatcher.active.name
    if options.earliest_time:
        oldest_ms = subscription.oldest_unacked_ms()
        stats.earliest_msg_publish_time_in_backlog = (
            -1 if oldest_ms is None else oldest_ms + skew_ms
        )
    return stats


# The object `headgate` ------------------------------------------------------------------------


def limits_view(limits: dict[str, EffectiveLimit]) -> dict[str, Any]:
    """Limits by level, with where each is set; a level without one is left out."""
    return {
        level: _limit_view(effective) for level, effective in limits.items() if effective.source
    }


def _limit_view(effective: EffectiveLimit) -> dict[str, Any]:
    limit = effective.limit
    if limit is None:
        return {"unlimited": True, "source": effective.source}
    view: dict[str, Any] = {
        "messages": limit.messages,
        "bytes": limit.bytes,
        "periodSeconds": limit.period_ns / NS_PER_S,
        "source": effective.source,
    }
    if limit.base is not None:
        view["abovePublishRate"] = {"messages": limit.base.messages, "bytes": limit.base.bytes}
    return view


def _own_subscription_fields(
    limits: CurrentDispatchLimits,
    subscription: Subscription,
    shared_limits: Sequence[EffectiveLimit],
) -> dict[str, Any]:
    account, topic = subscription.account, subscription.topic
    now_ns = topic.now_ns
    booked = account.peek(now_ns)
    label = LABELS[account.cell]
    seconds: dict[str, float] = {}
    throttled: list[dict[str, Any]] = []
    for cell, elapsed_ns in zip(LABELS, booked, strict=True):
        if not elapsed_ns:
            continue
        state = cell.state.value
        seconds[state] = seconds.get(state, 0.0) + elapsed_ns / NS_PER_S
        if cell.level is not None:
            throttled.append(
                {
                    "state": state,
                    "dimension": cell.dimension,
                    "consumer": cell.consumer,
                    "seconds": elapsed_ns / NS_PER_S,
                }
            )
    current = [limits.of_subscription(subscription), *shared_limits]
    age_ms = subscription.oldest_age_ms()
    view: dict[str, Any] = {
        "state": label.state.value,
        "since": iso_time(topic.now_ms - (now_ns - account.entered_ns) // NS_PER_MS),
        "stateSeconds": seconds,
        "backlogMessages": subscription.backlog_messages,
        "backlogBytes": subscription.backlog_bytes,
        "unackedMessages": subscription.dispatcher.in_flight_messages(),
        "delayedMessages": subscription.delayed_messages,
        "acknowledgedOutOfOrder": subscription.acks.holes_count,
        "acknowledgedSpan": subscription.acks.holes_span,
        "oldestAgeSeconds": None if age_ms is None else age_ms / MS_PER_S,
        "limits": limits_view(dict(zip(_LEVELS, current, strict=True))),
    }
    if label.level is not None:
        view |= {"dimension": label.dimension, "consumer": label.consumer}
    if throttled:
        view["throttledSeconds"] = throttled
    partials = subscription.acks.partials
    if partials is not None:
        view["partlyAcknowledgedBatches"] = len(partials)
    if subscription.read_failed:
        view["readFailed"] = subscription.read_failed
    return view


def _own_consumer_fields(topic: Topic, consumer: Consumer) -> dict[str, Any]:
    """``oldestUnackedAgeSeconds`` is None for a consumer that holds nothing, or alone gets the
    messages of its subscription: then it is the subscription's."""
    log, first = topic.log, next(iter(consumer.held), None)
    received_ms = None
    if first is not None:
        is_in_memory = first >= log.memory_first
        received_ms = log.received_ms(first) if is_in_memory else log.received_latest_ms(first)
    return {
        "takesMessages": consumer.permits > 0 and not consumer.blocked_on_unacked,
        "isInReserve": consumer.told_active is False,
        "oldestUnackedAgeSeconds": _age_s(topic, received_ms),
    }


def _age_s(topic: Topic, received_ms: int | None) -> float | None:
    return None if received_ms is None else max(topic.log_ms - received_ms, 0) / MS_PER_S
