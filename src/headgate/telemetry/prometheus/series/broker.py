"""The series of the broker itself."""

from __future__ import annotations

from typing import Final

from headgate.telemetry.prometheus.series.definition import (
    broker_counter,
    broker_gauge,
    own_broker_series,
)

DELAYS_IGNORED_SERIES: Final = own_broker_series(
    "delays_ignored_messages_total",
    "counter",
    "messages",
    "Messages with a delivery delay that were delivered at once, since the start.",
)

DELAYS_REFUSED_SERIES: Final = own_broker_series(
    "delays_refused_messages_total",
    "counter",
    "messages",
    "Messages that were refused, because they asked for a longer delay than is allowed, since the"
    " start.",
)

DELAYED_INDEX_SERIES: Final = own_broker_series(
    "delayed_index_bytes",
    "gauge",
    "bytes",
    "Memory of the indexes of delayed entries of all subscriptions, about, which"
    " ``headgateDelayedIndexMemoryMB`` bounds.",
)

PARTIALS_SERIES: Final = own_broker_series(
    "partly_acknowledged_batches_bytes",
    "gauge",
    "bytes",
    "Memory of the partly acknowledged batches of all subscriptions. Beyond 128 MiB, the"
    " subscriptions with most take no more.",
)

UNAUTHORIZED_SERIES: Final = own_broker_series(
    "authorization_refused_total",
    "counter",
    "requests",
    "Commands and requests to the web port that a role was not allowed to send, since the start.",
)

DUPLICATES_SERIES: Final = own_broker_series(
    "duplicates_dropped_messages_total",
    "counter",
    "messages",
    "Messages that deduplication did not store, because they had been stored before, since the"
    " start.",
)

BROKER_SERIES: Final = (
    broker_gauge(
        "version_info", "1", "Always 1; the labels have the running version.", "version", "commit"
    ),
    broker_gauge("broker_topics_count", "topics", "Live topics; each partition is one."),
    broker_gauge("broker_subscriptions_count", "subscriptions", "Subscriptions, readers included."),
    broker_gauge("broker_producers_count", "producers", "Connected producers."),
    broker_gauge("broker_consumers_count", "consumers", "Connected consumers."),
    broker_gauge("broker_rate_in", "messages/s", "Messages published."),
    broker_gauge(
        "broker_rate_out", "messages/s", "Messages handed to consumers, repeats included."
    ),
    broker_gauge("broker_throughput_in", "bytes/s", "Bytes published."),
    broker_gauge(
        "broker_throughput_out", "bytes/s", "Bytes handed to consumers, repeats included."
    ),
    broker_gauge(
        "broker_in_bytes_total",
        "bytes",
        "Bytes published since the topics were loaded, by whether the topic is the broker's own.",
        "system_topic",
    ),
    broker_gauge(
        "broker_out_bytes_total",
        "bytes",
        "Bytes handed to consumers since the topics were loaded, by whether the topic is the"
        " broker's own.",
        "system_subscription",
    ),
    broker_gauge("broker_storage_size", "bytes", "Bytes of all entries held."),
    broker_gauge("broker_storage_logical_size", "bytes", "As ``storage_size``: there is one copy."),
    broker_gauge("broker_storage_write_rate", "entries/s", "Entries stored."),
    broker_gauge("broker_storage_read_rate", "entries/s", "Entries read from disk."),
    broker_gauge(
        "broker_storage_read_cache_misses_rate",
        "entries/s",
        "As the read rate: entries in memory are not read.",
    ),
    broker_gauge("broker_msg_backlog", "entries", "Unacknowledged entries of all subscriptions."),
    broker_gauge(
        "broker_throttled_connections",
        "connections",
        "Connections at their limit of unanswered messages, whose further messages wait.",
    ),
    broker_counter(
        "broker_lookup_answers",
        "lookups",
        "Lookups of the binary protocol that were answered since the start.",
    ),
    broker_counter(
        "broker_lookup_failures",
        "lookups",
        "Lookups of the binary protocol that were refused since the start.",
    ),
    broker_gauge(
        "broker_lookup_pending_requests",
        "lookups",
        "Lookups that wait for the creation of a topic.",
    ),
    broker_gauge(
        "active_connections",
        "connections",
        "Open connections of the binary protocol; ``broker`` is the advertised host.",
        "broker",
        "metric",
    ),
    broker_gauge(
        "connection_created_total_count",
        "connections",
        "Connections accepted since the start.",
        "broker",
        "metric",
    ),
    broker_gauge(
        "connection_create_success_count",
        "connections",
        "Accepted connections that sent a CONNECT.",
        "broker",
        "metric",
    ),
    broker_gauge(
        "connection_create_fail_count",
        "connections",
        "Accepted connections that ended without a CONNECT.",
        "broker",
        "metric",
    ),
    broker_gauge(
        "connection_closed_total_count",
        "connections",
        "Connections ended since the start.",
        "broker",
        "metric",
    ),
    DELAYS_IGNORED_SERIES,
    DELAYS_REFUSED_SERIES,
    UNAUTHORIZED_SERIES,
    DUPLICATES_SERIES,
    DELAYED_INDEX_SERIES,
    PARTIALS_SERIES,
)
"""Always on the page."""

TURN_SERIES: Final = (
    own_broker_series(
        "turn_longest_seconds",
        "gauge",
        "s",
        "The longest time of the last minute in which one piece of work held the event loop,"
        " garbage collection included; 0 if none took 1 ms.",
    ),
    own_broker_series(
        "turns_long_total",
        "counter",
        "turns",
        "Turns of the event loop that took more than 25 ms, since the start.",
    ),
)

DAMAGE_SERIES: Final = (
    own_broker_series(
        "damaged_topics",
        "gauge",
        "topics",
        "Topics that refuse clients because the disk lost data of them, until the loss is"
        " accepted.",
    ),
    own_broker_series(
        "damaged_subscriptions",
        "gauge",
        "subscriptions",
        "Subscriptions of other topics that refuse consumers because of damage, or whose next"
        " message is damaged on the disk.",
    ),
)
