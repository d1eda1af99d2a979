"""The series of adaptive publish throttling."""

from __future__ import annotations

from typing import Final

from headgate.telemetry.prometheus.series.definition import (
    own_broker_series,
    own_topic_series,
)

ADAPTIVE_SERIES: Final = (
    own_broker_series(
        "adaptive_memory_pressure",
        "gauge",
        "1",
        "Position of the broker's memory between its watermarks, 0 to 1. These series exist while"
        " adaptive publish throttling is enabled.",
    ),
    own_broker_series(
        "adaptive_active_topics",
        "gauge",
        "topics",
        "Topics that the controller limits now; 0 in observe-only mode.",
    ),
    own_broker_series(
        "adaptive_activations_total",
        "counter",
        "limits",
        "Limits that the controller set on a topic without one, since the start; none in"
        " observe-only mode.",
    ),
    own_broker_series(
        "adaptive_controller_last_evaluation_timestamp",
        "gauge",
        "ms",
        "End of the last cycle without a failure, since the epoch; 0 before the first.",
    ),
    own_broker_series(
        "adaptive_controller_evaluation_duration",
        "gauge",
        "ms",
        "Time that the last cycle took on the broker's loop.",
    ),
    own_broker_series(
        "adaptive_controller_evaluation_failures_total",
        "counter",
        "cycles",
        "Cycles in which anything failed, since the start.",
    ),
    own_broker_series(
        "adaptive_controller_interval", "gauge", "ms", "Configured time between two cycles."
    ),
    own_broker_series(
        "adaptive_observe_only", "gauge", "1", "1 while decisions are recorded and not enforced."
    ),
    own_broker_series(
        "adaptive_memory_used_bytes",
        "gauge",
        "bytes",
        "Memory that the broker uses and could not free at once, as of the last cycle.",
    ),
    own_broker_series(
        "adaptive_memory_limit_bytes",
        "gauge",
        "bytes",
        "Memory that the broker may use; the watermarks are parts of it.",
    ),
)
"""Of the broker, in the order of :mod:`.adaptive_figures`."""


ADAPTIVE_TOPIC_SERIES: Final = (
    own_topic_series(
        "adaptive_topic_active",
        "gauge",
        "1",
        "1 while the controller limits the topic. These series need"
        " ``adaptivePublisherThrottlingPerTopicMetricsEnabled``, and exist once the topic has"
        " published.",
    ),
    own_topic_series(
        "adaptive_topic_natural_publish_rate",
        "gauge",
        "messages/s",
        "The learned rate at which the topic publishes while nothing holds it; 0 while unknown.",
    ),
    own_topic_series(
        "adaptive_topic_effective_publish_rate",
        "gauge",
        "messages/s",
        "The rate that the controller allows, or would allow in observe-only mode; the natural"
        " rate without a limit.",
    ),
    own_topic_series(
        "adaptive_topic_memory_pressure",
        "gauge",
        "1",
        "Pressure from memory on this topic, 0 to 1; 0 if the topic does not use much of it.",
    ),
    own_topic_series(
        "adaptive_topic_backlog_pressure",
        "gauge",
        "1",
        "Position of the fuller quota between the watermarks, 0 to 1.",
    ),
    own_topic_series(
        "adaptive_topic_rate_reduction_ratio",
        "gauge",
        "1",
        "1 minus the allowed share of the natural rate.",
    ),
)
"""Of a topic, in this order."""
