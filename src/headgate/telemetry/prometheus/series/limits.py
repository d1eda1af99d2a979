"""The series of limits: those in force, and the deliveries that they throttled."""

from __future__ import annotations

from typing import Final

from headgate.telemetry.prometheus.series.definition import (
    SUBSCRIPTION_LABELS,
    Series,
    subscription_gauge,
)

LIMIT_SERIES: Final = Series(
    "headgate_effective_limit",
    "gauge",
    (*SUBSCRIPTION_LABELS, "limiter", "dimension", "source"),
    "messages/s or bytes/s",
    "Limit in force, as a rate; ``source`` says where it is set. ``limiter`` is ``subscription``,"
    " ``topic`` or ``broker`` of a dispatch limit, ``publish_topic`` or ``publish_broker`` of a"
    " publish limit, whose source may be the adaptive controller. A limit of the broker has no"
    " topic labels, a limit of a topic no subscription label. A level without a limit has no"
    " sample.",
)

_THROTTLED_MEANING: Final = (
    "Periods in which the limit in {} of the level that ``reason`` names delayed delivery"
    " (PIP-406). Six samples for each subscription, zeros included."
)
THROTTLED_SERIES: Final = (
    subscription_gauge(
        "subscription_dispatch_throttled_msg_events",
        "events",
        _THROTTLED_MEANING.format("messages"),
        "reason",
    ),
    subscription_gauge(
        "subscription_dispatch_throttled_bytes_events",
        "events",
        _THROTTLED_MEANING.format("bytes"),
        "reason",
    ),
)
"""In the order of :class:`headgate.flow.limits.rate_limit.Dimension`."""

_HELD_BACK_MEANING: Final = (
    "{} that backlog and permits allowed and a limit in {} held back, once for each limiter and"
    " delivery attempt (PIP-406, first form)."
)
HELD_BACK_SERIES: Final = (
    subscription_gauge(
        "subscription_dispatch_throttled_msgs",
        "messages",
        _HELD_BACK_MEANING.format("Messages", "messages"),
        "tenant",
    ),
    subscription_gauge(
        "subscription_dispatch_throttled_bytes",
        "bytes",
        _HELD_BACK_MEANING.format("Bytes", "bytes"),
        "tenant",
    ),
)
"""In the order of :class:`headgate.flow.limits.rate_limit.Dimension`."""
