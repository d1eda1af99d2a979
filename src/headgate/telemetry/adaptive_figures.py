"""The adaptive controller's figures, for /metrics and OpenTelemetry alike.

Nothing of it is there while the feature is off; figures of topics only where they are asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headgate.base.units import NS_PER_MS
from headgate.telemetry.prometheus.values import Number

if TYPE_CHECKING:
    from headgate.broker.service import Broker
    from headgate.control.adaptive import AdaptiveThrottle
    from headgate.engine.topic import Topic

PULSAR_BROKER: Final = "pulsar.broker.adaptive.throttle."
PULSAR_TOPIC: Final = "pulsar.broker.topic.adaptive.throttle."


def broker_figures(throttle: AdaptiveThrottle) -> tuple[Number, ...]:
    """In the order of :data:`headgate.telemetry.prometheus.series.ADAPTIVE_SERIES`."""
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


def topic_figures(broker: Broker, topic: Topic) -> tuple[Number, ...] | None:
    """In the order of :data:`headgate.telemetry.prometheus.series.ADAPTIVE_TOPIC_SERIES`; None
    where there are none, or nobody asks for them."""
    wanted = broker.settings.adaptivePublisherThrottlingPerTopicMetricsEnabled
    if not wanted or broker.adaptive is None or topic.control is None:
        return None
    active, *others = topic.control.figures()
    return (int(active), *others)
