"""Merges the statistics of partitions into those of their topic.

Each field is combined as Pulsar does (``TopicStatsImpl.add`` and those of its parts): a field that
Pulsar does not merge keeps its default or is left out. Two of its defects are not copied: a
``backlogSize`` that was not requested stays -1, and the earliest publish time of a subscription
does not depend on the order of partitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import UNSET

from headgate.base.units import safe_sum
from headgate.observe.stats.fields import (
    ConsumerStats,
    PublisherStats,
    SubscriptionStats,
    TopicStats,
)

CLIENTS_PER_YIELD = 8
"""Producers or consumers that are merged between two yields."""

_TOPIC_SUMS = (
    "msg_rate_in", "msg_throughput_in", "msg_rate_out", "msg_throughput_out", "bytes_in_counter",
    "msg_in_counter", "bytes_out_counter", "msg_out_counter", "storage_size", "backlog_size",
    "publish_rate_limited_times", "offloaded_storage_size", "waiting_publishers",
    "non_contiguous_deleted_messages_ranges",
    "non_contiguous_deleted_messages_ranges_serialized_size",
    "delayed_message_index_size_in_bytes",
)  # fmt: skip
_TOPIC_LAST = (
    "backlog_quota_limit_size", "backlog_quota_limit_time", "ongoing_txn_count",
    "aborted_txn_count", "committed_txn_count",
)  # fmt: skip
_SUBSCRIPTION_SUMS = (
    "msg_rate_out", "msg_throughput_out", "bytes_out_counter", "msg_out_counter",
    "msg_rate_redeliver", "message_ack_rate", "chunked_message_rate", "msg_backlog",
    "msg_backlog_no_delayed", "msg_delayed", "msg_in_replay", "unacked_messages",
    "msg_rate_expired", "total_msg_expired", "draining_hashes_count",
    "draining_hashes_cleared_total", "draining_hashes_unacked_messages",
    "non_contiguous_deleted_messages_ranges",
    "non_contiguous_deleted_messages_ranges_serialized_size",
    "delayed_message_index_size_in_bytes", "filter_processed_msg_count",
    "filter_accepted_msg_count", "filter_rejected_msg_count", "filter_rescheduled_msg_count",
    "dispatch_throttled_msg_events_by_subscription_limit",
    "dispatch_throttled_bytes_events_by_subscription_limit",
    "dispatch_throttled_msg_events_by_topic_limit",
    "dispatch_throttled_bytes_events_by_topic_limit",
    "dispatch_throttled_msg_events_by_broker_limit",
    "dispatch_throttled_bytes_events_by_broker_limit",
)  # fmt: skip
_SUBSCRIPTION_COUNTERS = ("dispatch_throttled_msgs", "dispatch_throttled_bytes")
_SUBSCRIPTION_ORS = (
    "is_durable", "is_replicated", "durable", "replicated", "allow_out_of_order_delivery",
)  # fmt: skip
_CONSUMER_SUMS = (
    "msg_rate_out", "msg_throughput_out", "bytes_out_counter", "msg_out_counter",
    "msg_rate_redeliver", "message_ack_rate", "chunked_message_rate", "available_permits",
    "unacked_messages", "draining_hashes_count", "draining_hashes_cleared_total",
    "draining_hashes_unacked_messages",
)  # fmt: skip
_PUBLISHER_SUMS = ("msg_rate_in", "msg_throughput_in", "chunked_message_rate")


def merge_topic_stats(partitions: Iterable[TopicStats]) -> TopicStats:
    """The statistics of a partitioned topic; ``partitions`` are not changed."""
    merging = Merging()
    for part in partitions:
        for _ in merging.add(part):
            pass
    return merging.merged


class Merging:
    """The statistics of a partitioned topic, to which its partitions are added one by one."""

    def __init__(self) -> None:
        self.merged = TopicStats()
        self._count = 0

    def add(self, part: TopicStats) -> Iterator[None]:
        """Add one partition's statistics, which are not changed. Yields where it may be
        interrupted."""
        self._count += 1
        merged = self.merged
        _add(merged, part, _TOPIC_SUMS)
        for name in _TOPIC_LAST:
            setattr(merged, name, getattr(part, name))
        merged.average_msg_size += (part.average_msg_size - merged.average_msg_size) / self._count
        if part.oldest_backlog_message_age_seconds > merged.oldest_backlog_message_age_seconds:
            merged.oldest_backlog_message_age_seconds = part.oldest_backlog_message_age_seconds
            merged.oldest_backlog_message_subscription_name = (
                part.oldest_backlog_message_subscription_name
            )
        merged.earliest_msg_publish_time_in_backlogs = _earliest(
            merged.earliest_msg_publish_time_in_backlogs,
            part.earliest_msg_publish_time_in_backlogs,
        )
        yield from _merge_publishers(merged.publishers, part.publishers)
        for name, subscription in part.subscriptions.items():
            known = merged.subscriptions.get(name)
            if known is None:
                known = SubscriptionStats(is_durable=False, durable=False)
                merged.subscriptions[name] = known
                known.backlog_size = min(subscription.backlog_size, 0)
            yield from _merge_subscription(known, subscription)


def _merge_subscription(into: SubscriptionStats, part: SubscriptionStats) -> Iterator[None]:
    _add(into, part, _SUBSCRIPTION_SUMS)
    _add_counters(into, part, _SUBSCRIPTION_COUNTERS)
    for name in _SUBSCRIPTION_ORS:
        setattr(into, name, getattr(into, name) or getattr(part, name))
    if part.backlog_size >= 0:
        into.backlog_size = max(into.backlog_size, 0) + part.backlog_size
    into.earliest_msg_publish_time_in_backlog = _earliest(
        into.earliest_msg_publish_time_in_backlog, part.earliest_msg_publish_time_in_backlog
    )
    if part.type is not UNSET and (part.type != "None" or into.type is UNSET):
        into.type = part.type
    into.consumers_after_mark_delete_position |= part.consumers_after_mark_delete_position
    into.subscription_properties |= part.subscription_properties
    same_size = len(into.consumers) == len(part.consumers)
    for index, consumer in enumerate(part.consumers):
        if not same_size:
            into.consumers.append(ConsumerStats())
        target = into.consumers[index if same_size else -1]
        _add(target, consumer, _CONSUMER_SUMS)
        target.consumer_name = consumer.consumer_name
        target.blocked_consumer_on_unacked_msgs |= consumer.blocked_consumer_on_unacked_msgs
        if index % CLIENTS_PER_YIELD == CLIENTS_PER_YIELD - 1:
            yield
    yield


def _merge_publishers(into: list[PublisherStats], part: list[PublisherStats]) -> Iterator[None]:
    """Add by name, if the clients may leave out partitions; else index by index if both lists are
    as long, else append."""
    if any(publisher.supports_partial_producer for publisher in part):
        yield from _merge_partial(into, part)
        return
    same_size = len(into) == len(part)
    for index, publisher in enumerate(part):
        if not same_size:
            into.append(PublisherStats())
        target = into[index if same_size else -1]
        _add(target, publisher, _PUBLISHER_SUMS)
        target.average_msg_size = (
            (target.average_msg_size + publisher.average_msg_size) / 2
            if same_size
            else publisher.average_msg_size
        )
        if index % CLIENTS_PER_YIELD == CLIENTS_PER_YIELD - 1:
            yield


def _merge_partial(into: list[PublisherStats], part: list[PublisherStats]) -> Iterator[None]:
    by_name = {publisher.producer_name: publisher for publisher in into}
    for index, publisher in enumerate(part):
        target = by_name.get(publisher.producer_name)
        is_new = target is None
        if target is None:
            target = by_name[publisher.producer_name] = PublisherStats(
                producer_name=publisher.producer_name, supports_partial_producer=True
            )
            into.append(target)
        _add(target, publisher, _PUBLISHER_SUMS)
        target.average_msg_size = (
            publisher.average_msg_size
            if is_new
            else (target.average_msg_size + publisher.average_msg_size) / 2
        )
        if index % CLIENTS_PER_YIELD == CLIENTS_PER_YIELD - 1:
            yield


def _add(into: Any, part: Any, names: tuple[str, ...]) -> None:
    for name in names:
        setattr(into, name, getattr(into, name) + getattr(part, name))


def _add_counters(into: Any, part: Any, names: tuple[str, ...]) -> None:
    """Add counters up to the largest integer of Java."""
    for name in names:
        setattr(into, name, safe_sum(getattr(into, name), getattr(part, name)))


def _earliest(a: int, b: int) -> int:
    """The earlier of two times; 0 (not requested) and -1 (no backlog) only if there is no time."""
    times = [value for value in (a, b) if value > 0]
    return min(times) if times else min(a, b)
