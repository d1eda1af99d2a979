"""The adaptive controller's figures, for /metrics and OpenTelemetry alike.

There are none while the feature is off, and figures of topics only if the settings ask for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headgate.base.units import NS_PER_MS
from headgate.telemetry.prometheus.values import Number

if TYPE_CHECKING:
    from headgate.control.adaptive import AdaptiveThrottle
    from headgate.engine.topic import Topic
    from headgate.policy.settings import Settings

PULSAR_BROKER: Final = "pulsar.broker.adaptive.throttle."
PULSAR_TOPIC: Final = "pulsar.broker.topic.adaptive.throttle."


def broker_figures(throttle: AdaptiveThrottle) -> tuple[Number, ...]:
    """In the order of :data:`headgate.telemetry.prometheus.series.adaptive.ADAPTIVE_SERIES`."""
    status, settings = throttle.status, throttle.settings
    return (
        status.memory_pressure,
        throttle.active_count,
        status.activations,
        status.last_evaluation_ms,
        status.evaluation_ns / NS_PER_MS,
        status.failures,
        settings.interval_ns // NS_PER_MS,
        int(settings.observe_only),
        status.memory_used_bytes,
        throttle.memory_limit_bytes,
    )


def topic_figures(settings: Settings, topic: Topic) -> tuple[Number, ...] | None:
    """In the order of :data:`.series.adaptive.ADAPTIVE_TOPIC_SERIES`.

    None if the setting does not ask for them or the controller does not know the topic.
    """
    if (
        not settings.adaptivePublisherThrottlingPerTopicMetricsEnabled
        or topic.publishing.control is None
    ):
        return None
    active, *others = topic.publishing.control.figures()
    return (int(active), *others)
