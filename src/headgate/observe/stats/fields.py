"""The JSON fields of topic statistics: Pulsar's, in Pulsar's order, plus ``headgate``.

Rates are per second, times are milliseconds since the epoch unless they are text (ISO 8601, UTC),
sizes are bytes. A field that Pulsar leaves out when it has no value is ``UNSET`` by default.
Field meanings: Pulsar 4.0 admin API; shapes checked against a recorded broker.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from msgspec import UNSET, Struct, UnsetType, field


class PublisherStats(Struct, rename="camel", kw_only=True):
    """One connected producer."""

    access_mode: str | UnsetType = UNSET
    msg_rate_in: float = 0.0
    msg_throughput_in: float = 0.0
    average_msg_size: float = 0.0
    chunked_message_rate: float = 0.0
    producer_id: int = 0
    supports_partial_producer: bool = False
    producer_name: str | UnsetType = UNSET
    address: str | UnsetType = UNSET
    connected_since: str | UnsetType = UNSET
    client_version: str | UnsetType = UNSET
    metadata: Mapping[str, str] | UnsetType = UNSET


class ConsumerStats(Struct, rename="camel", kw_only=True):
    """One connected consumer."""

    msg_rate_out: float = 0.0
    msg_throughput_out: float = 0.0
    bytes_out_counter: int = 0
    msg_out_counter: int = 0
    msg_rate_redeliver: float = 0.0
    message_ack_rate: float = 0.0
    chunked_message_rate: float = 0.0
    consumer_name: str | UnsetType = UNSET
    available_permits: int = 0
    unacked_messages: int = 0
    avg_messages_per_entry: int = 0
    blocked_consumer_on_unacked_msgs: bool = False
    draining_hashes_count: int = 0
    draining_hashes_cleared_total: int = 0
    draining_hashes_unacked_messages: int = 0
    address: str | UnsetType = UNSET
    connected_since: str | UnsetType = UNSET
    client_version: str | UnsetType = UNSET
    last_acked_timestamp: int = 0
    last_consumed_timestamp: int = 0
    last_consumed_flow_timestamp: int = 0
    metadata: Mapping[str, str] | UnsetType = UNSET
    last_acked_time: str = "1970-01-01T00:00:00Z"
    last_consumed_time: str = "1970-01-01T00:00:00Z"
    headgate: Any | UnsetType = UNSET
    """Headgate's fields of this consumer; Pulsar's clients ignore them."""


class SubscriptionStats(Struct, rename="camel", kw_only=True):
    """One subscription. ``msg_backlog`` counts entries, as Pulsar does."""

    msg_rate_out: float = 0.0
    msg_throughput_out: float = 0.0
    bytes_out_counter: int = 0
    msg_out_counter: int = 0
    msg_rate_redeliver: float = 0.0
    message_ack_rate: float = 0.0
    chunked_message_rate: float = 0.0
    msg_backlog: int = 0
    backlog_size: int = 0
    earliest_msg_publish_time_in_backlog: int = 0
    msg_backlog_no_delayed: int = 0
    blocked_subscription_on_unacked_msgs: bool = False
    msg_delayed: int = 0
    msg_in_replay: int = 0
    unacked_messages: int = 0
    type: str | UnsetType = UNSET
    active_consumer_name: str | UnsetType = UNSET
    msg_rate_expired: float = 0.0
    total_msg_expired: int = 0
    last_expire_timestamp: int = 0
    last_consumed_flow_timestamp: int = 0
    last_consumed_timestamp: int = 0
    last_acked_timestamp: int = 0
    last_mark_delete_advanced_timestamp: int = 0
    consumers: list[ConsumerStats] = field(default_factory=list)
    is_durable: bool = True
    is_replicated: bool = False
    allow_out_of_order_delivery: bool = False
    consumers_after_mark_delete_position: dict[str, str] = field(default_factory=dict)
    draining_hashes_count: int = 0
    draining_hashes_cleared_total: int = 0
    draining_hashes_unacked_messages: int = 0
    non_contiguous_deleted_messages_ranges: int = 0
    non_contiguous_deleted_messages_ranges_serialized_size: int = 0
    delayed_message_index_size_in_bytes: int = 0
    subscription_properties: dict[str, str] = field(default_factory=dict)
    filter_processed_msg_count: int = 0
    filter_accepted_msg_count: int = 0
    filter_rejected_msg_count: int = 0
    filter_rescheduled_msg_count: int = 0
    dispatch_throttled_msg_events_by_subscription_limit: int = 0
    dispatch_throttled_bytes_events_by_subscription_limit: int = 0
    dispatch_throttled_msg_events_by_topic_limit: int = 0
    dispatch_throttled_bytes_events_by_topic_limit: int = 0
    dispatch_throttled_msg_events_by_broker_limit: int = 0
    dispatch_throttled_bytes_events_by_broker_limit: int = 0
    dispatch_throttled_msgs: int = 0
    """Messages that limits in messages throttled (first form of PIP-406)."""
    dispatch_throttled_bytes: int = 0
    """Bytes that limits in bytes throttled."""
    oldest_backlog_message_age_seconds: int = -1
    """Age of the oldest unacknowledged message; -1 without backlog (PIP-492)."""
    durable: bool = True
    """Pulsar writes ``isDurable`` twice, under both names; so does ``replicated``."""
    replicated: bool = False
    headgate: Any | UnsetType = UNSET
    """Headgate's fields of this subscription; Pulsar's clients ignore them."""


class CompactionStats(Struct, rename="camel", frozen=True):
    """Compaction is not built: all fields are zero, as in a broker that never compacted."""

    last_compaction_removed_event_count: int = 0
    last_compaction_succeed_timestamp: int = 0
    last_compaction_failed_timestamp: int = 0
    last_compaction_duration_time_in_mills: int = 0


class TopicStats(Struct, rename="camel", kw_only=True):
    """One topic that holds messages: a partition, or a topic without partitions."""

    msg_rate_in: float = 0.0
    msg_throughput_in: float = 0.0
    msg_rate_out: float = 0.0
    msg_throughput_out: float = 0.0
    bytes_in_counter: int = 0
    msg_in_counter: int = 0
    system_topic_bytes_in_counter: int = 0
    bytes_out_counter: int = 0
    msg_out_counter: int = 0
    bytes_out_internal_counter: int = 0
    average_msg_size: float = 0.0
    msg_chunk_published: bool = False
    storage_size: int = 0
    backlog_size: int = 0
    backlog_quota_limit_size: int = -1
    backlog_quota_limit_time: int = -1
    oldest_backlog_message_age_seconds: int = -1
    oldest_backlog_message_subscription_name: str | UnsetType = UNSET
    publish_rate_limited_times: int = 0
    earliest_msg_publish_time_in_backlogs: int = 0
    offloaded_storage_size: int = 0
    last_offload_ledger_id: int = 0
    last_offload_success_time_stamp: int = 0
    last_offload_failure_time_stamp: int = 0
    ongoing_txn_count: int = 0
    aborted_txn_count: int = 0
    committed_txn_count: int = 0
    publishers: list[PublisherStats] = field(default_factory=list)
    waiting_publishers: int = 0
    subscriptions: dict[str, SubscriptionStats] = field(default_factory=dict)
    replication: dict[str, Any] = field(default_factory=dict)
    deduplication_status: str | UnsetType = UNSET
    """``Disabled`` for one topic; left out of the sum over partitions."""
    topic_epoch: int | UnsetType = UNSET
    """Left out before the first exclusive producer, and of the sum over partitions."""
    non_contiguous_deleted_messages_ranges: int = 0
    non_contiguous_deleted_messages_ranges_serialized_size: int = 0
    delayed_message_index_size_in_bytes: int = 0
    compaction: CompactionStats = CompactionStats()
    owner_broker: str | UnsetType = UNSET
    topic_creation_time_stamp: int = 0
    last_publish_time_stamp: int = 0
    """When the broker received the last message; 0 if there never was one (PIP-431)."""
    headgate: Any | UnsetType = UNSET
    """Headgate's fields of this topic; Pulsar's clients ignore them."""


class LedgerStats(Struct, rename="camel", kw_only=True, frozen=True):
    """One ledger of a topic."""

    ledger_id: int
    entries: int
    size: int
    offloaded: bool = False
    metadata: str | UnsetType = UNSET
    under_replicated: bool = False


NO_LEDGER = LedgerStats(ledger_id=-1, entries=-1, size=-1)
"""The compacted ledger of a topic that was never compacted."""


class CursorStats(Struct, rename="camel", kw_only=True):
    """The cursor of one subscription; positions are ``ledger:entry``."""

    mark_delete_position: str
    read_position: str
    waiting_read_op: bool = False
    pending_read_ops: int = 0
    messages_consumed_counter: int = 0
    cursor_ledger: int = -1
    cursor_ledger_last_entry: int = -1
    individually_deleted_messages: str = "[]"
    last_ledger_switch_timestamp: str = "1970-01-01T00:00:00Z"
    state: str = "Open"
    active: bool = False
    number_of_entries_since_first_not_acked_message: int = 0
    total_non_contiguous_deleted_messages_range: int = 0
    subscription_have_pending_read: bool = False
    subscription_have_pending_replay_read: bool = False
    properties: dict[str, int] = field(default_factory=dict)


class InternalStats(Struct, rename="camel", kw_only=True):
    """Ledgers and cursors of a topic."""

    entries_added_counter: int
    number_of_entries: int
    total_size: int
    current_ledger_entries: int
    current_ledger_size: int
    last_ledger_created_timestamp: str
    waiting_cursors_count: int = 0
    pending_add_entries_count: int = 0
    last_confirmed_entry: str = "-1:-1"
    state: str = "LedgerOpened"
    ledgers: list[LedgerStats] = field(default_factory=list)
    cursors: dict[str, CursorStats] = field(default_factory=dict)
    schema_ledgers: list[LedgerStats] = field(default_factory=list)
    compacted_ledger: LedgerStats = NO_LEDGER


@dataclass(frozen=True, slots=True)
class StatsOptions:
    """The query parameters of ``stats``, with Pulsar's defaults."""

    precise_backlog: bool = False
    backlog_size: bool = True
    """False: ``backlogSize`` of subscriptions is -1."""
    earliest_time: bool = False
    """False: ``earliestMsgPublishTime...`` is 0."""
    exclude_publishers: bool = False
    exclude_consumers: bool = False
