"""Every series of ``GET /metrics``: name, type, labels, unit and meaning.

The reference page is generated from this table, and the page has no series outside it. Names that
start with ``pulsar_`` are Pulsar's, with the type that a Pulsar 4.0 broker prints: ``gauge`` even
for values that only grow, because dashboards and type checks expect it. Series of features that
Headgate does not have (tiered storage, transactions, delayed delivery, entry filters, replication,
compaction) are absent, not zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

BROKER_LABELS: Final = ("cluster",)
NAMESPACE_LABELS: Final = ("cluster", "namespace")
TOPIC_LABELS: Final = ("cluster", "namespace", "topic")
SUBSCRIPTION_LABELS: Final = ("cluster", "namespace", "topic", "subscription")


@dataclass(frozen=True, slots=True)
class Series:
    """One name on the page."""

    name: str
    type: str
    """``gauge``, ``counter`` or ``histogram``, as its TYPE line says."""
    labels: tuple[str, ...]
    unit: str
    meaning: str

    @property
    def family(self) -> str:
        """The name on its TYPE line: without ``_total`` where it is a counter of Pulsar's."""
        of_pulsar = self.type == "counter" and self.name.startswith("pulsar_")
        return self.name.removesuffix("_total") if of_pulsar else self.name


LinesOf = Callable[[Series], list[str]]
"""Gives the lines of a series on a page, each a whole line without its end."""


def _broker(name: str, unit: str, meaning: str, *labels: str) -> Series:
    return Series(f"pulsar_{name}", "gauge", (*BROKER_LABELS, *labels), unit, meaning)


def _counter(name: str, unit: str, meaning: str) -> Series:
    return Series(f"pulsar_{name}_total", "counter", BROKER_LABELS, unit, meaning)


def _connections(name: str, meaning: str) -> Series:
    return _broker(name, "connections", meaning, "broker", "metric")


def _topic(name: str, unit: str, meaning: str) -> Series:
    return Series(f"pulsar_{name}", "gauge", TOPIC_LABELS, unit, meaning)


def _subscription(name: str, unit: str, meaning: str, *labels: str) -> Series:
    return Series(f"pulsar_{name}", "gauge", (*SUBSCRIPTION_LABELS, *labels), unit, meaning)


DELAYS_IGNORED_SERIES: Final = Series(
    "headgate_delays_ignored_messages_total",
    "counter",
    BROKER_LABELS,
    "messages",
    "Messages with a delivery delay that were delivered at once, since the start.",
)

BROKER_SERIES: Final = (
    _broker("version_info", "1",
            "Always 1; the labels have the running version.", "version", "commit"),
    _broker("broker_topics_count", "topics", "Live topics; each partition is one."),
    _broker("broker_subscriptions_count", "subscriptions", "Subscriptions, readers included."),
    _broker("broker_producers_count", "producers", "Connected producers."),
    _broker("broker_consumers_count", "consumers", "Connected consumers."),
    _broker("broker_rate_in", "messages/s", "Messages published."),
    _broker("broker_rate_out", "messages/s", "Messages handed to consumers, repeats included."),
    _broker("broker_throughput_in", "bytes/s", "Bytes published."),
    _broker("broker_throughput_out", "bytes/s", "Bytes handed to consumers, repeats included."),
    _broker("broker_in_bytes_total", "bytes", "Bytes published since the topics were loaded, by"
            " whether the topic is the broker's own.", "system_topic"),
    _broker("broker_out_bytes_total", "bytes", "Bytes handed to consumers since the topics were"
            " loaded, by whether the topic is the broker's own.", "system_subscription"),
    _broker("broker_storage_size", "bytes", "Bytes of all entries held."),
    _broker("broker_storage_logical_size", "bytes", "As ``storage_size``: there is one copy."),
    _broker("broker_storage_write_rate", "entries/s", "Entries stored."),
    _broker("broker_storage_read_rate", "entries/s", "Entries read from disk."),
    _broker("broker_storage_read_cache_misses_rate", "entries/s",
            "As the read rate: entries in memory are not read."),
    _broker("broker_msg_backlog", "entries", "Unacknowledged entries of all subscriptions."),
    _broker("broker_throttled_connections", "connections",
            "Connections that have as many unanswered messages as they may, so that further"
            " messages wait."),
    _counter("broker_lookup_answers", "lookups", "Lookups of the binary protocol that were"
             " answered since the start."),
    _counter("broker_lookup_failures", "lookups", "Lookups of the binary protocol that were"
             " refused since the start."),
    _broker("broker_lookup_pending_requests", "lookups",
            "Lookups that wait for the creation of a topic."),
    _connections("active_connections", "Open connections of the binary protocol; ``broker`` is"
                 " the advertised host."),
    _connections("connection_created_total_count", "Connections accepted since the start."),
    _connections("connection_create_success_count", "Accepted connections that sent a CONNECT."),
    _connections("connection_create_fail_count",
                 "Accepted connections that ended without a CONNECT."),
    _connections("connection_closed_total_count", "Connections ended since the start."),
    DELAYS_IGNORED_SERIES,
)  # fmt: skip
"""Always on the page."""

NAMESPACE_SERIES: Final = (
    Series("pulsar_topics_count", "gauge", NAMESPACE_LABELS, "topics", "Live topics in it."),
)

TOPIC_SERIES: Final = (
    _topic("subscriptions_count", "subscriptions", "Subscriptions, readers included."),
    _topic("producers_count", "producers", "Connected producers."),
    _topic("consumers_count", "consumers", "Connected consumers."),
    _topic("rate_in", "messages/s", "Messages published, over the last 5 to 10 s."),
    _topic("rate_out", "messages/s", "Messages handed to consumers, over the last 5 to 10 s."),
    _topic("throughput_in", "bytes/s", "Bytes published, over the last 5 to 10 s."),
    _topic("throughput_out", "bytes/s", "Bytes handed to consumers, over the last 5 to 10 s."),
    _topic("in_messages_total", "messages", "Messages published since the topic was loaded."),
    _topic("in_bytes_total", "bytes", "Bytes published since the topic was loaded."),
    _topic("average_msg_size", "bytes", "Mean size of the messages of the last 5 to 10 s."),
    _topic("msg_backlog", "entries", "Unacknowledged entries, summed over its subscriptions."),
    _topic("storage_size", "bytes", "Bytes of all entries held."),
    _topic("storage_logical_size", "bytes", "As ``storage_size``: there is one copy."),
    _topic("storage_backlog_size", "bytes", "Largest exact backlog of a durable subscription."),
    _topic("storage_backlog_age_seconds", "s", "Age of the oldest message that a durable"
           " subscription has not acknowledged; -1 without backlog."),
    _topic("storage_write_rate", "entries/s", "Entries stored, over the last 5 to 10 s."),
    _topic("storage_read_rate", "entries/s", "Entries read from disk, over the last 5 to 10 s."),
    _topic("storage_read_cache_misses_rate", "entries/s",
           "As the read rate: entries in memory are not read."),
    _topic("publish_rate_limit_times", "events",
           "Times a connection with a producer on the topic began to be throttled, whichever of its"
           " producers caused that: as Pulsar counts. ``headgate_publish_parked_seconds_total`` has"
           " the exact waits."),
)  # fmt: skip
"""With ``exposeTopicLevelMetricsInPrometheus``; in the order of :func:`values.topic_values`."""

LATENCY_BUCKETS: Final = (
    "le_0_5", "le_1", "le_5", "le_10", "le_20", "le_50", "le_100", "le_200", "le_1000", "overflow",
)  # fmt: skip
"""Of :data:`headgate.engine.write_histograms.LATENCY_BOUNDS_NS`, as Pulsar names them (ms)."""
SIZE_BUCKETS: Final = (
    "le_128", "le_512", "le_1_kb", "le_2_kb", "le_4_kb", "le_16_kb", "le_100_kb", "le_1_mb",
    "le_overflow",
)  # fmt: skip
"""Of :data:`headgate.engine.write_histograms.SIZE_BOUNDS_BYTES`."""


def _buckets(name: str, unit: str, buckets: tuple[str, ...], what: str) -> tuple[Series, ...]:
    """One series for each bucket, their count, their sum; ``unit`` is that of the sum."""
    of = "Entries of the last whole minute"
    bounds = [
        bucket.removeprefix("le_").replace("_kb", " KiB").replace("_mb", " MiB").replace("_", ".")
        for bucket in buckets[:-1]
    ]
    ranges = [f"up to {bound}" for bound in bounds] + [f"over {bounds[-1]}"]
    for place, bound in enumerate(bounds[:-1], 1):
        ranges[place] = f"over {bound}, {ranges[place]}"
    return (
        *(
            _topic(f"{name}_{bucket}", "entries", f"{of}, by {what}: {place}.")
            for bucket, place in zip(buckets, ranges, strict=True)
        ),
        _topic(f"{name}_count", "entries", f"{of}."),
        _topic(f"{name}_sum", unit, f"{of}: the sum of these."),
    )


WRITE_SERIES: Final = (
    *_buckets("storage_write_latency", "us", LATENCY_BUCKETS, "ms from arrival to receipt"),
    *_buckets("storage_ledger_write_latency", "us", LATENCY_BUCKETS,
              "ms that the log took for their commit"),
    *_buckets("entry_size", "bytes", SIZE_BUCKETS, "size in bytes"),
)  # fmt: skip
"""With ``exposeTopicLevelMetricsInPrometheus``; in the order of :func:`values.write_values`."""

SUBSCRIPTION_SERIES: Final = (
    _subscription("subscription_back_log", "entries", "Unacknowledged entries."),
    _subscription("subscription_back_log_no_delayed", "entries",
                  "Unacknowledged entries: none is delayed."),
    _subscription("subscription_in_replay", "messages", "Given back, to be delivered again."),
    _subscription("subscription_unacked_messages", "messages",
                  "With consumers and not acknowledged."),
    _subscription("subscription_blocked_on_unacked_messages", "0 or 1", "Whether the"
                  " subscription's limit of unacknowledged messages holds it."),
    _subscription("subscription_consumers_count", "consumers", "Connected consumers."),
    _subscription("subscription_msg_rate_out", "messages/s", "Handed to consumers."),
    _subscription("subscription_msg_throughput_out", "bytes/s", "Handed to consumers."),
    _subscription("subscription_msg_ack_rate", "messages/s", "Acknowledged."),
    _subscription("subscription_msg_rate_redeliver", "messages/s", "Given back."),
    _subscription("subscription_msg_rate_expired", "messages/s", "Skipped by expiry."),
    _subscription("subscription_total_msg_expired", "messages",
                  "Skipped by expiry since the topic was loaded."),
    _subscription("out_messages_total", "messages",
                  "Handed to consumers since the topic was loaded."),
    _subscription("out_bytes_total", "bytes", "Handed to consumers since the topic was loaded."),
    _subscription("subscription_last_expire_timestamp", "ms",
                  "Last expiry of a message, since the epoch; 0 if none."),
    _subscription("subscription_last_acked_timestamp", "ms",
                  "Last acknowledgement, since the epoch; 0 if none."),
    _subscription("subscription_last_consumed_flow_timestamp", "ms",
                  "Last request for messages, since the epoch; 0 if none."),
    _subscription("subscription_last_consumed_timestamp", "ms",
                  "Last hand-over to a consumer, since the epoch; 0 if none."),
    _subscription("subscription_last_mark_delete_advanced_timestamp", "ms",
                  "Last advance of the mark-delete position, since the epoch; 0 if none."),
)  # fmt: skip
"""With ``exposeTopicLevelMetricsInPrometheus``; as :func:`values.subscription_values`."""

BACKLOG_AGE_SERIES: Final = _subscription(
    "subscription_storage_backlog_age_seconds",
    "s",
    "Age of the oldest message that a durable subscription has not acknowledged, with"
    " ``exposeSubscriptionBacklogAgeInPrometheus``; without backlog there is no sample (PIP-492).",
)

_THROTTLED_MEANING: Final = (
    "Periods in which the limit in {} of the level that ``reason`` names delayed delivery"
    " (PIP-406). Six samples for each subscription, zeros included."
)
THROTTLED_SERIES: Final = (
    _subscription("subscription_dispatch_throttled_msg_events", "events",
                  _THROTTLED_MEANING.format("messages"), "reason"),
    _subscription("subscription_dispatch_throttled_bytes_events", "events",
                  _THROTTLED_MEANING.format("bytes"), "reason"),
)  # fmt: skip
"""In the order of :class:`headgate.flow.limits.rate_limit.Dimension`."""

_HELD_BACK_MEANING: Final = (
    "{} that backlog and permits allowed and a limit in {} held back, once for each limiter and"
    " delivery attempt (PIP-406, first form)."
)
HELD_BACK_SERIES: Final = (
    _subscription("subscription_dispatch_throttled_msgs", "messages",
                  _HELD_BACK_MEANING.format("Messages", "messages"), "tenant"),
    _subscription("subscription_dispatch_throttled_bytes", "bytes",
                  _HELD_BACK_MEANING.format("Bytes", "bytes"), "tenant"),
)  # fmt: skip
"""In the order of :class:`headgate.flow.limits.rate_limit.Dimension`."""

STATE_SERIES: Final = Series(
    "headgate_subscription_state_seconds_total",
    "counter",
    (*SUBSCRIPTION_LABELS, "state", "dimension", "consumer"),
    "s",
    "Time that the subscription spent in each state since it was loaded; the states of one"
    " subscription add up to the elapsed time. A state that never occurred has no sample.",
)

LIMIT_SERIES: Final = Series(
    "headgate_effective_limit",
    "gauge",
    (*SUBSCRIPTION_LABELS, "limiter", "dimension", "source"),
    "messages/s or bytes/s",
    "Limit in force, as a rate; ``source`` says where it is set. ``limiter`` is ``subscription``,"
    " ``topic`` or ``broker`` of a dispatch limit, ``publish_topic`` or ``publish_broker`` of a"
    " publish limit, whose source may be the adaptive controller. The broker's has no labels of a"
    " topic, a topic's none of a subscription; without a limit there is no sample.",
)

EVICTIONS_OF_BROKER_SERIES: Final = _broker(
    "broker_storage_backlog_quota_exceeded_evictions_total",
    "events",
    "Evictions by backlog quotas since the start, by type of quota. It does not fall when a topic"
    " is unloaded (PIP-323).",
    "quota_type",
)
DAMAGE_SERIES: Final = (
    Series(
        "headgate_damaged_topics",
        "gauge",
        BROKER_LABELS,
        "topics",
        "Topics that refuse clients because the disk lost data of them, which is not accepted yet.",
    ),
    Series(
        "headgate_damaged_subscriptions",
        "gauge",
        BROKER_LABELS,
        "subscriptions",
        "Subscriptions of other topics that refuse consumers because of damage, or whose next"
        " message is damaged on the disk.",
    ),
)
CHECK_DURATION_SERIES: Final = Series(
    "pulsar_storage_backlog_quota_check_duration_seconds",
    "histogram",
    BROKER_LABELS,
    "s",
    "How long the periodic check of all backlog quotas took, once for each check: ``_bucket`` with"
    " ``le``, ``_count`` and ``_sum`` (PIP-323). The bounds below 5 s are Headgate's.",
)
CHECK_DEFECTS_SERIES: Final = Series(
    "headgate_backlog_quota_check_defects_total",
    "counter",
    BROKER_LABELS,
    "topics",
    "Topics whose quota the periodic check found not enforced, and repaired: 0 unless there is a"
    " bug.",
)


def _disk(name: str, kind: str, unit: str, meaning: str) -> Series:
    return Series(f"headgate_disk_{name}", kind, BROKER_LABELS, unit, meaning)


DISK_FREE_SERIES: Final = _disk(
    "free_bytes", "gauge", "bytes",
    "Free space of the file system of the data directory, read every 5 s.",
)  # fmt: skip
DISK_SIZE_SERIES: Final = _disk(
    "size_bytes", "gauge", "bytes", "Size of the file system of the data directory."
)
DISK_FULL_SERIES: Final = _disk(
    "full", "gauge", "1",
    "1 while published messages wait because the log has no room, else 0.",
)  # fmt: skip
DISK_FULL_SECONDS_SERIES: Final = _disk(
    "full_seconds_total",
    "counter",
    "s",
    "Time in which messages waited for disk space, since the start.",
)
COMMITS_SERIES: Final = Series(
    "headgate_commits_total", "counter", BROKER_LABELS, "commits",
    "Group commits of the log since the start, failed ones included.",
)  # fmt: skip
COMMIT_SECONDS_SERIES: Final = Series(
    "headgate_commit_seconds_total", "counter", BROKER_LABELS, "s",
    "Time that group commits took, from the hand-over to the disk until durable: the least that a"
    " receipt takes.",
)  # fmt: skip
COMMIT_LONGEST_SERIES: Final = Series(
    "headgate_commit_longest_seconds", "gauge", BROKER_LABELS, "s",
    "The longest commit of the last 10 s; 0 without commits.",
)  # fmt: skip
COMMIT_RUNNING_SERIES: Final = Series(
    "headgate_commit_running_seconds", "gauge", BROKER_LABELS, "s",
    "Age of the running commit; 0 without one.",
)  # fmt: skip
CONNECTIONS_REFUSED_SERIES: Final = Series(
    "headgate_connections_refused_total", "counter", BROKER_LABELS, "connections",
    "Connections refused since the start for lack of file descriptors.",
)  # fmt: skip
STORAGE_SERIES: Final = (
    DISK_FREE_SERIES,
    DISK_SIZE_SERIES,
    DISK_FULL_SERIES,
    DISK_FULL_SECONDS_SERIES,
    COMMITS_SERIES,
    COMMIT_SECONDS_SERIES,
    COMMIT_LONGEST_SERIES,
    COMMIT_RUNNING_SERIES,
    CONNECTIONS_REFUSED_SERIES,
)

QUOTA_SIZE_SERIES: Final = _topic(
    "storage_backlog_quota_limit", "bytes", "Size quota in force; -1 without one."
)
QUOTA_TIME_SERIES: Final = _topic(
    "storage_backlog_quota_limit_time", "s", "Time quota in force; -1 without one."
)
EVICTIONS_SERIES: Final = Series(
    "pulsar_storage_backlog_quota_exceeded_evictions_total",
    "gauge",
    (*TOPIC_LABELS, "quota_type"),
    "events",
    "Evictions by a backlog quota since the topic was loaded, by type of quota. Two samples for"
    " each topic, zeros included (PIP-323).",
)


def _quota(name: str, kind: str, unit: str, meaning: str, *labels: str) -> Series:
    return Series(f"headgate_{name}", kind, (*TOPIC_LABELS, *labels), unit, meaning)


EVICTED_MESSAGES_SERIES: Final = _quota(
    "backlog_evicted_messages_total", "counter", "messages",
    "Messages that a backlog quota evicted, summed"
    " over subscriptions, since the topic was loaded.", "quota_type",
)  # fmt: skip
EVICTED_BYTES_SERIES: Final = _quota(
    "backlog_evicted_bytes_total",
    "counter",
    "bytes",
    "Bytes that a backlog quota evicted, summed over subscriptions, since the topic was loaded.",
    "quota_type",
)
BREACH_SERIES: Final = _quota(
    "backlog_quota_seconds_to_breach", "gauge", "s",
    "Time until the quota is reached at the smoothed present rate of growth; 0 while it is reached,"
    " no sample if it will not be within a day.", "quota_type",
)  # fmt: skip
PRODUCERS_HELD_SERIES: Final = _quota(
    "backlog_quota_producers_held", "gauge", "producers",
    "Connected producers whose messages wait for room in a backlog quota.",
)  # fmt: skip
STOPPED_SECONDS_SERIES: Final = _quota(
    "backlog_quota_stopped_seconds_total", "counter", "s",
    "Time in which the quota held or refused producers, since the topic was loaded. Producers that"
    " were disconnected meanwhile count.", "quota_type",
)  # fmt: skip
PRODUCERS_CLOSED_SERIES: Final = _quota(
    "backlog_quota_producers_closed_total", "counter", "producers",
    "Producers that a quota disconnected, at once or after headgateHoldParkMs, since the topic was"
    " loaded.",
)  # fmt: skip
PRODUCERS_REFUSED_SERIES: Final = _quota(
    "backlog_quota_producers_refused_total", "counter", "attempts",
    "Attempts to create a producer that a quota refused, those of reconnecting clients included.",
)  # fmt: skip
PARKED_SECONDS_SERIES: Final = _quota(
    "publish_parked_seconds_total", "counter", "s",
    "Time in which at least one published message waited in the broker, by cause, since the topic"
    " was loaded. The causes are ``topic_rate``, ``broker_rate``, ``adaptive``,"
    " ``backlog_quota``, ``pending_limit``, ``memory`` and ``disk_full``.", "cause",
)  # fmt: skip
PARKED_MESSAGES_SERIES: Final = _quota(
    "publish_parked_messages", "gauge", "messages", "Messages that wait now.", "cause"
)
PARKED_BYTES_SERIES: Final = _quota(
    "publish_parked_bytes", "gauge", "bytes", "Bytes of messages that wait now.", "cause"
)

QUOTA_SERIES: Final = (
    QUOTA_SIZE_SERIES,
    QUOTA_TIME_SERIES,
    EVICTIONS_SERIES,
    EVICTED_MESSAGES_SERIES,
    EVICTED_BYTES_SERIES,
    BREACH_SERIES,
    PRODUCERS_HELD_SERIES,
    STOPPED_SECONDS_SERIES,
    PRODUCERS_CLOSED_SERIES,
    PRODUCERS_REFUSED_SERIES,
)
"""With ``exposeTopicLevelMetricsInPrometheus``; Headgate's own only of topics that have, or had, a
quota."""

PARKED_SERIES: Final = (PARKED_SECONDS_SERIES, PARKED_MESSAGES_SERIES, PARKED_BYTES_SERIES)
"""Of topics on which anything ever waited. Without ``exposeTopicLevelMetricsInPrometheus`` waiting
messages are summed for each namespace. Seconds are not: topics wait at the same time, and the sum
would fall with each unloaded topic."""


def _adaptive(name: str, kind: str, unit: str, meaning: str) -> Series:
    return Series(f"headgate_adaptive_{name}", kind, BROKER_LABELS, unit, meaning)


ADAPTIVE_SERIES: Final = (
    _adaptive("memory_pressure", "gauge", "1",
              "Position of the broker's memory between its watermarks, 0 to 1. These series exist"
              " while adaptive publish throttling is enabled."),
    _adaptive("active_topics", "gauge", "topics",
              "Topics that the controller limits now; 0 in observe-only mode."),
    _adaptive("activations_total", "counter", "limits",
              "Limits that the controller set on a topic without one, since the start; none in"
              " observe-only mode."),
    _adaptive("controller_last_evaluation_timestamp", "gauge", "ms",
              "End of the last cycle without a failure, since the epoch; 0 before the first."),
    _adaptive("controller_evaluation_duration", "gauge", "ms",
              "Time that the last cycle took on the broker's loop."),
    _adaptive("controller_evaluation_failures_total", "counter", "cycles", "Cycles in which"
              " anything failed, since the start."),
    _adaptive("controller_interval", "gauge", "ms", "Configured time between two cycles."),
    _adaptive("observe_only", "gauge", "1", "1 while decisions are recorded and not enforced."),
    _adaptive("memory_used_bytes", "gauge", "bytes",
              "Memory that the broker uses and could not free at once, as of the last cycle."),
    _adaptive("memory_limit_bytes", "gauge", "bytes",
              "Memory that the broker may use; the watermarks are parts of it."),
)  # fmt: skip
"""Of the broker, in the order of :mod:`.adaptive_figures`."""


def _adaptive_topic(name: str, unit: str, meaning: str) -> Series:
    return Series(f"headgate_adaptive_topic_{name}", "gauge", TOPIC_LABELS, unit, meaning)


ADAPTIVE_TOPIC_SERIES: Final = (
    _adaptive_topic("active", "1",
                    "1 while the controller limits the topic. These series need"
                    " ``adaptivePublisherThrottlingPerTopicMetricsEnabled``, and exist once the"
                    " topic has published."),
    _adaptive_topic("natural_publish_rate", "messages/s",
                    "The learned rate at which the topic publishes while nothing holds it; 0 while"
                    " unknown."),
    _adaptive_topic("effective_publish_rate", "messages/s",
                    "The rate that the controller allows, or would allow in observe-only mode; the"
                    " natural rate without a limit."),
    _adaptive_topic("memory_pressure", "1",
                    "Pressure from memory on this topic, 0 to 1; 0 if the topic does not use much"
                    " of it."),
    _adaptive_topic("backlog_pressure", "1",
                    "Position of the fuller quota between the watermarks, 0 to 1."),
    _adaptive_topic("rate_reduction_ratio", "1", "1 minus the allowed share of the natural rate."),
)  # fmt: skip
"""Of a topic, in this order."""

SUMMED_TOPIC_NAMES: Final = frozenset(
    f"pulsar_{name}"
    for name in (
        "subscriptions_count", "producers_count", "consumers_count", "rate_in", "rate_out",
        "throughput_in", "throughput_out", "in_messages_total", "in_bytes_total", "msg_backlog",
        "storage_size", "storage_logical_size", "storage_backlog_size", "storage_write_rate",
        "storage_read_rate", "storage_read_cache_misses_rate",
    )
)  # fmt: skip
"""Of :data:`TOPIC_SERIES`; summed for each namespace where topics have no series of their own. So
are :data:`WRITE_SERIES` and :data:`EVICTIONS_SERIES`."""

SUMMED_SUBSCRIPTION_NAMES: Final = frozenset(
    f"pulsar_{name}" for name in ("out_messages_total", "out_bytes_total", "subscription_in_replay")
)
"""Of :data:`SUBSCRIPTION_SERIES`; summed like these."""

SERIES: Final = (
    *BROKER_SERIES,
    EVICTIONS_OF_BROKER_SERIES,
    *DAMAGE_SERIES,
    CHECK_DURATION_SERIES,
    CHECK_DEFECTS_SERIES,
    *STORAGE_SERIES,
    *ADAPTIVE_SERIES,
    *NAMESPACE_SERIES,
    *TOPIC_SERIES,
    *WRITE_SERIES,
    *SUBSCRIPTION_SERIES,
    BACKLOG_AGE_SERIES,
    *THROTTLED_SERIES,
    *HELD_BACK_SERIES,
    *QUOTA_SERIES,
    *PARKED_SERIES,
    *ADAPTIVE_TOPIC_SERIES,
    STATE_SERIES,
    LIMIT_SERIES,
)
"""All of the page, in its order."""
