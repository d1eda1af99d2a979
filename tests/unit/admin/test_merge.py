"""Partitions' statistics summed into their topic's."""

from __future__ import annotations

import msgspec

from headgate.admin.merge import merge_topic_stats
from headgate.observe.stats.fields import (
    ConsumerStats,
    PublisherStats,
    SubscriptionStats,
    TopicStats,
)


def test_of_nothing_is_zero() -> None:
    assert merge_topic_stats([]) == TopicStats()


def test_without_a_backlog_the_age_is_that_of_none() -> None:
    """As of each partition; Pulsar's sum begins at 0, which is the age of a new message."""
    assert merge_topic_stats([]).oldest_backlog_message_age_seconds == -1
    merged = merge_topic_stats([TopicStats(), TopicStats()])
    assert merged.oldest_backlog_message_age_seconds == -1
    assert merged.oldest_backlog_message_subscription_name is msgspec.UNSET
    new = TopicStats(oldest_backlog_message_age_seconds=0)
    assert merge_topic_stats([TopicStats(), new]).oldest_backlog_message_age_seconds == 0


def test_amounts_add_up_and_the_last_quota_stays() -> None:
    merged = merge_topic_stats(
        [
            TopicStats(msg_rate_in=1.5, bytes_in_counter=10, backlog_quota_limit_size=1,
                       average_msg_size=10.0, system_topic_bytes_in_counter=5,
                       deduplication_status="Disabled", owner_broker="here"),
            TopicStats(msg_rate_in=2.0, bytes_in_counter=30, backlog_quota_limit_size=7,
                       average_msg_size=20.0),
        ]
    )  # fmt: skip
    assert (merged.msg_rate_in, merged.bytes_in_counter) == (3.5, 40)
    assert merged.backlog_quota_limit_size == 7
    assert merged.average_msg_size == 15.0
    assert merged.system_topic_bytes_in_counter == 0
    shown = msgspec.to_builtins(merged)
    assert "ownerBroker" not in shown
    assert "deduplicationStatus" not in shown


def test_the_oldest_message_names_its_subscription() -> None:
    merged = merge_topic_stats(
        [
            TopicStats(oldest_backlog_message_age_seconds=5,
                       oldest_backlog_message_subscription_name="a"),
            TopicStats(oldest_backlog_message_age_seconds=-1),
            TopicStats(oldest_backlog_message_age_seconds=9,
                       oldest_backlog_message_subscription_name="b"),
        ]
    )  # fmt: skip
    assert merged.oldest_backlog_message_age_seconds == 9
    assert merged.oldest_backlog_message_subscription_name == "b"


def _with(**stats: object) -> TopicStats:
    return TopicStats(subscriptions={"s": SubscriptionStats(**stats)})  # type: ignore[arg-type]


def test_subscriptions_are_merged_by_name() -> None:
    first = _with(msg_backlog=3, backlog_size=30, type="Shared", subscription_properties={"a": "1"})
    second = _with(msg_backlog=4, backlog_size=40, type="Shared", is_durable=False, durable=False)
    other = TopicStats(subscriptions={"other": SubscriptionStats(is_durable=False, durable=False)})
    merged = merge_topic_stats([first, second, other]).subscriptions
    assert list(merged) == ["s", "other"]
    assert (merged["s"].msg_backlog, merged["s"].backlog_size) == (7, 70)
    assert (merged["s"].type, merged["s"].is_durable) == ("Shared", True)
    assert merged["s"].subscription_properties == {"a": "1"}
    assert not merged["other"].is_durable
    assert first.subscriptions["s"].msg_backlog == 3


def test_a_partition_without_consumer_does_not_hide_the_type() -> None:
    merged = merge_topic_stats([_with(type="Shared"), _with(type="None")])
    assert merged.subscriptions["s"].type == "Shared"


def test_what_was_not_asked_for_stays_unknown() -> None:
    merged = merge_topic_stats([_with(backlog_size=-1), _with(backlog_size=-1)])
    assert merged.subscriptions["s"].backlog_size == -1
    assert merge_topic_stats([_with(backlog_size=0)]).subscriptions["s"].backlog_size == 0


def test_the_earliest_time_does_not_depend_on_the_order() -> None:
    times = [-1, 500, 300, -1]
    for order in (times, times[::-1]):
        merged = merge_topic_stats(
            [_with(earliest_msg_publish_time_in_backlog=time) for time in order]
        )
        assert merged.subscriptions["s"].earliest_msg_publish_time_in_backlog == 300
    none = merge_topic_stats([_with(earliest_msg_publish_time_in_backlog=-1)] * 2)
    assert none.subscriptions["s"].earliest_msg_publish_time_in_backlog == -1


def test_consumers_and_producers_are_merged_by_place() -> None:
    def part(*names: str) -> TopicStats:
        stats = _with(
            consumers=[ConsumerStats(consumer_name=n, available_permits=5) for n in names]
        )
        stats.publishers = [
            PublisherStats(producer_name=n, msg_rate_in=2.0, average_msg_size=8.0) for n in names
        ]
        return stats

    merged = merge_topic_stats([part("a"), part("a"), part("a", "b")])
    consumers = merged.subscriptions["s"].consumers
    assert [(c.consumer_name, c.available_permits) for c in consumers] == [
        ("a", 10), ("a", 5), ("b", 5),
    ]  # fmt: skip
    assert [p.msg_rate_in for p in merged.publishers] == [4.0, 2.0, 2.0]
    assert [p.average_msg_size for p in merged.publishers] == [8.0, 8.0, 8.0]
    assert "producerName" not in msgspec.to_builtins(merged.publishers[0])


def test_producers_that_may_leave_out_partitions_are_merged_by_name() -> None:
    def part(*names: str) -> TopicStats:
        stats = _with(consumers=[])
        stats.waiting_publishers = 1
        stats.publishers = [
            PublisherStats(
                producer_name=n, msg_rate_in=2.0, average_msg_size=8.0, producer_id=7,
                supports_partial_producer=True,
            )
            for n in names
        ]  # fmt: skip
        return stats

    merged = merge_topic_stats([part("a", "b"), part("b"), part("c", "b")])
    assert [(p.producer_name, p.msg_rate_in) for p in merged.publishers] == [
        ("a", 2.0), ("b", 6.0), ("c", 2.0),
    ]  # fmt: skip
    assert all(p.average_msg_size == 8.0 and p.producer_id == 0 for p in merged.publishers)
    assert all(p.supports_partial_producer for p in merged.publishers)
    assert merged.waiting_publishers == 3
    assert "topicEpoch" not in msgspec.to_builtins(merged)


def test_amounts_that_limits_held_back_add_up_as_far_as_java_counts() -> None:
    """PIP-406's first form: a sum beyond a ``long`` begins anew."""
    largest = (1 << 63) - 1
    parts = [
        TopicStats(
            subscriptions={
                "s": SubscriptionStats(dispatch_throttled_msgs=5, dispatch_throttled_bytes=size)
            }
        )
        for size in (largest, 7)
    ]
    merged = merge_topic_stats(parts).subscriptions["s"]
    assert (merged.dispatch_throttled_msgs, merged.dispatch_throttled_bytes) == (10, 7)
