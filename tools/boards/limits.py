"""The board of dispatch and publish limits."""

from __future__ import annotations

from typing import Any

from boards.alert_rules import alerts_of
from boards.panels import Panel, Query, Row, alert_row, board, share
from boards.selectors import (
    LIMIT_STATES,
    OF_CLUSTER,
    OF_TOPIC,
    STATE_SECONDS,
    SUBSCRIPTION,
    TOPIC,
    top,
)

_SUBSCRIPTION_NAME = "{{topic}} {{partition}} {{subscription}}"
_TOPIC_NAME = "{{topic}} {{partition}}"
_EVENTS = "pulsar_subscription_dispatch_throttled_{}_events"
_LEVELS = ("subscription", "topic", "broker", "publish_topic", "publish_broker")


def _used(rate: str, labels: str, limiter: str, dimension: str, chosen: str) -> str:
    """A rate as a part of the limit in force."""
    limit = f'headgate_effective_limit{{{chosen},limiter="{limiter}",dimension="{dimension}"}}'
    return (
        f"sum by ({labels}) ({rate}{{{chosen}}}) / on ({labels}) (max by ({labels}) ({limit}) > 0)"
    )


def _used_panel(title: str, limiter: str, labels: str, rates: tuple[str, str], name: str) -> Panel:
    """How much of the limits of one level is used, in messages and in bytes."""
    is_wide = labels == "cluster"
    chosen = OF_CLUSTER if is_wide else OF_TOPIC
    queries = []
    for rate, dimension in zip(rates, ("messages", "bytes"), strict=True):
        used = _used(rate, labels, limiter, dimension, chosen)
        queries.append(Query(used if is_wide else top(used), f"{name} {dimension}"))
    return share(
        title, "Rate of delivery or publishing as a part of the limit in force. A limit that stays "
        "far below 1 binds nothing.", *queries, threshold=1.0, opens_topic=not is_wide,
    )  # fmt: skip


def _limits(limiter: str, dimension: str) -> Query:
    chosen = OF_CLUSTER if limiter.endswith("broker") else OF_TOPIC
    limit = f'headgate_effective_limit{{{chosen},limiter="{limiter}",dimension="{dimension}"}}'
    return Query(top(limit), f"{limiter} {_SUBSCRIPTION_NAME} ({{{{source}}}})")


def _holding() -> Row:
    return Row("What limits hold", [
        share("Consumers with room, held by a limit", "Part of 15 minutes. The limit is to "
              "blame: a higher one lets more through. LimitHoldsHungryConsumer begins at "
              "half.",
              Query(top(f"sum by ({SUBSCRIPTION}, state) "
                        f"(rate({STATE_SECONDS}{{{OF_TOPIC},{LIMIT_STATES}}}[15m]))"),
                    f"{_SUBSCRIPTION_NAME} {{{{state}}}}"), threshold=0.5),
        share("Busy consumers that meet a limit", "Part of 15 minutes. The consumer is to "
              "blame: a higher limit changes nothing.",
              Query(top(f"sum by ({SUBSCRIPTION}, state) (rate({STATE_SECONDS}{{{OF_TOPIC},"
                        'state=~"throttled_.*",consumer="busy"}[15m]))'),
                    f"{_SUBSCRIPTION_NAME} {{{{state}}}}")),
        share("Producers held by a publish limit", "Part of five minutes in which a "
              "message waited. PublishesThrottled begins at half.",
              Query(top("sum by (cluster, namespace, topic, partition, cause) (rate("
                        f"headgate_publish_parked_seconds_total{{{OF_TOPIC},"
                        'cause=~"topic_rate|broker_rate|adaptive"}[5m]))'),
                    f"{_TOPIC_NAME} {{{{cause}}}}"), threshold=0.5),
        Panel("Throttled events", "Periods a second in which a limit delayed delivery "
              "(PIP-406). They do not say whether the consumer would have taken more.",
              [Query(top(f"sum by ({SUBSCRIPTION}, reason) "
                         f"(rate({_EVENTS.format(kind)}{{{OF_TOPIC}}}[5m]))"),
                     f"{_SUBSCRIPTION_NAME} {{{{reason}}}} {kind}")
               for kind in ("msg", "bytes")], unit="cps"),
    ])  # fmt: skip


def _usage() -> Row:
    return Row("How much of each limit is used", [
        _used_panel("Subscription limits", "subscription", SUBSCRIPTION,
                    ("pulsar_subscription_msg_rate_out",
                     "pulsar_subscription_msg_throughput_out"), _SUBSCRIPTION_NAME),
        _used_panel("Topic limits", "topic", TOPIC,
                    ("pulsar_rate_out", "pulsar_throughput_out"), _TOPIC_NAME),
        _used_panel("Broker-wide dispatch limits", "broker", "cluster",
                    ("pulsar_broker_rate_out", "pulsar_broker_throughput_out"),
                    "{{cluster}}"),
        _used_panel("Publish limits of topics", "publish_topic", TOPIC,
                    ("pulsar_rate_in", "pulsar_throughput_in"), _TOPIC_NAME),
        _used_panel("Publish limits of the broker", "publish_broker", "cluster",
                    ("pulsar_broker_rate_in", "pulsar_broker_throughput_in"),
                    "{{cluster}}"),
    ])  # fmt: skip


def _in_force() -> Row:
    return Row("Limits in force", [
        Panel("In messages", "The largest of each level, with where it is set.",
              [_limits(level, "messages") for level in _LEVELS], unit="cps"),
        Panel("In bytes", "The largest of each level, with where it is set.",
              [_limits(level, "bytes") for level in _LEVELS], unit="binBps"),
    ])  # fmt: skip


def limits_board() -> dict[str, Any]:
    """Which limits are in force, what they hold, and how much of each is used."""
    alerts = alerts_of("backlogs")
    return board(
        "limits",
        "Headgate: limits",
        "Which dispatch and publish limits are in force, where they are set, what they hold, and "
        "how much of each is used.",
        [
            _holding(),
            _usage(),
            _in_force(),
            alert_row([
                alerts["LimitHoldsHungryConsumer"], alerts["LimitDelaysGrowingBacklog"],
                alerts_of("adaptive-throttle")["PublishesThrottled"],
            ]),
        ],
    )  # fmt: skip
