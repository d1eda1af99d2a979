"""The series of subscriptions: their backlog, deliveries and states."""

from __future__ import annotations

from typing import Final

from headgate.telemetry.prometheus.series.definition import (
    SUBSCRIPTION_LABELS,
    Series,
    subscription_gauge,
)

SUBSCRIPTION_SERIES: Final = (
    subscription_gauge("subscription_back_log", "entries", "Unacknowledged entries."),
    subscription_gauge(
        "subscription_back_log_no_delayed",
        "entries",
        "Unacknowledged entries without those that are not due.",
    ),
    subscription_gauge("subscription_delayed", "entries", "Delayed entries that are not due."),
    subscription_gauge(
        "subscription_delayed_message_index_size_bytes",
        "bytes",
        "Memory of the index of its delayed entries, about.",
    ),
    subscription_gauge("subscription_in_replay", "messages", "Messages that wait for redelivery."),
    subscription_gauge(
        "subscription_unacked_messages", "messages", "Handed to consumers and not acknowledged."
    ),
    subscription_gauge(
        "subscription_blocked_on_unacked_messages",
        "0 or 1",
        "Whether the subscription's limit of unacknowledged messages holds it.",
    ),
    subscription_gauge("subscription_consumers_count", "consumers", "Connected consumers."),
    subscription_gauge("subscription_msg_rate_out", "messages/s", "Handed to consumers."),
    subscription_gauge("subscription_msg_throughput_out", "bytes/s", "Handed to consumers."),
    subscription_gauge("subscription_msg_ack_rate", "messages/s", "Acknowledged."),
    subscription_gauge("subscription_msg_rate_redeliver", "messages/s", "Returned for redelivery."),
    subscription_gauge("subscription_msg_rate_expired", "messages/s", "Skipped by expiry."),
    subscription_gauge(
        "subscription_total_msg_expired",
        "messages",
        "Skipped by expiry since the topic was loaded.",
    ),
    subscription_gauge(
        "out_messages_total", "messages", "Handed to consumers since the topic was loaded."
    ),
    subscription_gauge(
        "out_bytes_total", "bytes", "Handed to consumers since the topic was loaded."
    ),
    subscription_gauge(
        "subscription_last_expire_timestamp",
        "ms",
        "Last expiry of a message, since the epoch; 0 if none.",
    ),
    subscription_gauge(
        "subscription_last_acked_timestamp",
        "ms",
        "Last acknowledgement, since the epoch; 0 if none.",
    ),
    subscription_gauge(
        "subscription_last_consumed_flow_timestamp",
        "ms",
        "Last request for messages, since the epoch; 0 if none.",
    ),
    subscription_gauge(
        "subscription_last_consumed_timestamp",
        "ms",
        "Last hand-over to a consumer, since the epoch; 0 if none.",
    ),
    subscription_gauge(
        "subscription_last_mark_delete_advanced_timestamp",
        "ms",
        "Last advance of the mark-delete position, since the epoch; 0 if none.",
    ),
)
"""With ``exposeTopicLevelMetricsInPrometheus``; as :func:`values.subscription_values`."""

BACKLOG_AGE_SERIES: Final = subscription_gauge(
    "subscription_storage_backlog_age_seconds",
    "s",
    "Age of the oldest message that a durable subscription has not acknowledged, with"
    " ``exposeSubscriptionBacklogAgeInPrometheus``; without backlog there is no sample (PIP-492).",
)

STATE_SERIES: Final = Series(
    "headgate_subscription_state_seconds_total",
    "counter",
    (*SUBSCRIPTION_LABELS, "state", "dimension", "consumer"),
    "s",
    "Time that the subscription spent in each state since it was loaded; the states of one"
    " subscription add up to the elapsed time. A state that never occurred has no sample.",
)
