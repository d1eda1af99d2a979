"""The series of topics: their clients, rates and storage."""

from __future__ import annotations

from typing import Final

from headgate.telemetry.prometheus.series.definition import (
    own_broker_series,
    own_topic_series,
    topic_gauge,
)

TOPIC_SERIES: Final = (
    topic_gauge("subscriptions_count", "subscriptions", "Subscriptions, readers included."),
    topic_gauge("producers_count", "producers", "Connected producers."),
    topic_gauge("consumers_count", "consumers", "Connected consumers."),
    topic_gauge("rate_in", "messages/s", "Messages published, over the last 5 to 10 s."),
    topic_gauge("rate_out", "messages/s", "Messages handed to consumers, over the last 5 to 10 s."),
    topic_gauge("throughput_in", "bytes/s", "Bytes published, over the last 5 to 10 s."),
    topic_gauge("throughput_out", "bytes/s", "Bytes handed to consumers, over the last 5 to 10 s."),
    topic_gauge("in_messages_total", "messages", "Messages published since the topic was loaded."),
    topic_gauge("in_bytes_total", "bytes", "Bytes published since the topic was loaded."),
    topic_gauge("average_msg_size", "bytes", "Mean size of the messages of the last 5 to 10 s."),
    topic_gauge("msg_backlog", "entries", "Unacknowledged entries, summed over its subscriptions."),
    topic_gauge("storage_size", "bytes", "Bytes of all entries held."),
    topic_gauge("storage_logical_size", "bytes", "As ``storage_size``: there is one copy."),
    topic_gauge(
        "storage_backlog_size", "bytes", "Largest exact backlog of a durable subscription."
    ),
    topic_gauge(
        "storage_backlog_age_seconds",
        "s",
        "Age of the oldest message that a durable subscription has not acknowledged; -1 without"
        " backlog.",
    ),
    topic_gauge("storage_write_rate", "entries/s", "Entries stored, over the last 5 to 10 s."),
    topic_gauge(
        "storage_read_rate", "entries/s", "Entries read from disk, over the last 5 to 10 s."
    ),
    topic_gauge(
        "storage_read_cache_misses_rate",
        "entries/s",
        "As the read rate: entries in memory are not read.",
    ),
    topic_gauge(
        "publish_rate_limit_times",
        "events",
        "Times that throttling began on a connection with a producer of the topic, whichever"
        " producer of the connection caused it, as Pulsar counts."
        " ``headgate_publish_parked_seconds_total`` has the exact waits.",
    ),
    topic_gauge(
        "delayed_message_index_size_bytes",
        "bytes",
        "Memory of the indexes of delayed entries of its subscriptions, about.",
    ),
)
"""With ``exposeTopicLevelMetricsInPrometheus``; in the order of :func:`values.topic_values`."""

TOPIC_DUPLICATES_SERIES: Final = own_topic_series(
    "topic_duplicates_dropped_messages_total",
    "counter",
    "messages",
    "Messages that deduplication did not store, because they had been stored before, since the"
    " topic was loaded. Topics that never had deduplication have no sample.",
)

LEFT_OUT_SERIES: Final = (
    own_broker_series(
        "metrics_topics_left_out",
        "gauge",
        "topics",
        "Topics without series of their own on this page, because of"
        " `headgateMetricsSubjectsMax`. Sums for each namespace, without the label `topic`, have"
        " them.",
    ),
    own_broker_series(
        "metrics_subscriptions_left_out",
        "gauge",
        "subscriptions",
        "Subscriptions without series of their own on this page for the same reason.",
    ),
)
