"""The board for any Pulsar cluster from 4.0 on, by Pulsar's own series."""

from __future__ import annotations

from typing import Any

from boards.alert_rules import alerts_of
from boards.panels import Panel, Query, Row, alert_row, board, figure, share
from boards.selectors import OF_TOPIC, SUBSCRIPTION, top

_NAME = "{{topic}} {{partition}} {{subscription}}"
_TOPIC_NAME = "{{topic}} {{partition}}"
_WAITING = f"pulsar_subscription_back_log_no_delayed{{{OF_TOPIC}}}"
_THROTTLED = " + ".join(
    f"sum by ({SUBSCRIPTION}) "
    f"(rate(pulsar_subscription_dispatch_throttled_{kind}_events{{{OF_TOPIC}}}[15m]))"
    for kind in ("msg", "bytes")
)
_ANY_PULSAR = ("NoConsumer", "DispatcherStuck", "SubscriptionKeepsStorage", "TelemetryStale")
_QUOTAS = ("BacklogQuotaSizeNearlyUsed", "BacklogQuotaAgeNearlyUsed", "BacklogEvicted")


def _now() -> Row:
    return Row("Now", [
        figure("Subscriptions with messages waiting", "Those with an entry that is due.",
               f"count({_WAITING} > 0) or vector(0)"),
        figure("Entries waiting", "Of all subscriptions.", f"sum({_WAITING})"),
        figure("Oldest message", "Not acknowledged by a durable subscription.",
               f"max(pulsar_storage_backlog_age_seconds{{{OF_TOPIC}}} >= 0) or vector(0)",
               "s"),
        figure("Without a consumer", "Subscriptions with messages and no consumer.",
               f"count({_WAITING} > 0 unless on ({SUBSCRIPTION}) "
               f"(pulsar_subscription_consumers_count{{{OF_TOPIC}}} > 0)) or vector(0)"),
    ])  # fmt: skip


def _backlogs() -> Row:
    return Row("Backlogs", [
        Panel("Largest backlogs", "Entries that are not acknowledged and due.",
              [Query(top(_WAITING), _NAME)]),
        Panel("Oldest messages", "Of a topic.",
              [Query(top(f"pulsar_storage_backlog_age_seconds{{{OF_TOPIC}}} >= 0"),
                     _TOPIC_NAME)], unit="s"),
        Panel("Fastest growth", "Entries a second, over ten minutes.",
              [Query(top(f"deriv({_WAITING}[10m]) > 0"), _NAME)], unit="cps"),
        Panel("Without a consumer", "Entries that wait.",
              [Query(top(f"({_WAITING} > 0 unless on ({SUBSCRIPTION}) "
                         f"(pulsar_subscription_consumers_count{{{OF_TOPIC}}} > 0))"),
                     _NAME)]),
    ])  # fmt: skip


def _causes() -> Row:
    return Row("What the counters say about the cause", [
        Panel("Growing backlogs with throttled events", "Events a second of dispatch "
              "limits, where the backlog grew in 15 minutes: a limit or a consumer that is "
              "slower still.",
              [Query(top(f"({_THROTTLED}) > 0.1 and on ({SUBSCRIPTION}) "
                         f"(delta({_WAITING}[15m]) > 0)"), _NAME)], unit="cps"),
        Panel("Growing backlogs without throttled events", "Entries gained in 15 minutes "
              "without an event of a limit: the consumers are slow, or away (PIP-406).",
              [Query(top(f"(delta({_WAITING}[15m]) > 0) unless on ({SUBSCRIPTION}) "
                         f"(({_THROTTLED}) > 0)"), _NAME)]),
        Panel("Messages with consumers", "Handed over and not acknowledged.",
              [Query(top(f"pulsar_subscription_unacked_messages{{{OF_TOPIC}}}"), _NAME)]),
        Panel("Held by unacknowledged messages", "1 while the limit of unacknowledged "
              "messages holds a subscription.",
              [Query(top("pulsar_subscription_blocked_on_unacked_messages"
                         f"{{{OF_TOPIC}}} > 0"), _NAME)]),
        Panel("Delivered", "Messages a second.",
              [Query(top(f"pulsar_subscription_msg_rate_out{{{OF_TOPIC}}}"), _NAME)],
              unit="cps"),
        Panel("Acknowledged", "Messages a second.",
              [Query(top(f"pulsar_subscription_msg_ack_rate{{{OF_TOPIC}}}"), _NAME)],
              unit="cps"),
    ])  # fmt: skip


def _publishing() -> Row:
    return Row("Publishing and quotas", [
        Panel("Published", "Messages a second.",
              [Query(top(f"pulsar_rate_in{{{OF_TOPIC}}}"), _TOPIC_NAME)], unit="cps"),
        Panel("Publish throttling began", "Times in five minutes, on a connection with a "
              "producer of the topic, whichever producer caused it.",
              [Query(top("increase(pulsar_publish_rate_limit_times"
                         f"{{{OF_TOPIC}}}[5m]) > 0"), _TOPIC_NAME)]),
        share("Size quotas used", "BacklogQuotaSizeNearlyUsed begins at 80 %.",
              Query(top(f"pulsar_storage_backlog_size{{{OF_TOPIC}}} / "
                        f"(pulsar_storage_backlog_quota_limit{{{OF_TOPIC}}} > 0)"),
                    _TOPIC_NAME), threshold=0.8),
        share("Time quotas used", "BacklogQuotaAgeNearlyUsed begins at 80 %.",
              Query(top(f"(pulsar_storage_backlog_age_seconds{{{OF_TOPIC}}} >= 0) / "
                        f"(pulsar_storage_backlog_quota_limit_time{{{OF_TOPIC}}} > 0)"),
                    _TOPIC_NAME), threshold=0.8),
        Panel("Evictions by quotas", "In five minutes.",
              [Query(top("increase(pulsar_storage_backlog_quota_exceeded_evictions_total"
                         f"{{{OF_TOPIC}}}[5m]) > 0"),
                     f"{_TOPIC_NAME} {{{{quota_type}}}}")]),
        Panel("Storage", "Bytes of all entries held.",
              [Query(top(f"pulsar_storage_size{{{OF_TOPIC}}}"), _TOPIC_NAME)],
              unit="bytes"),
    ])  # fmt: skip


def plain_pulsar_board() -> dict[str, Any]:
    """Backlogs of a Pulsar cluster, and what its counters say about the cause."""
    backlogs, quotas = alerts_of("backlogs"), alerts_of("backlog-quotas")
    return board(
        "plain-pulsar",
        "Pulsar 4.0+: backlogs, limits and quotas",
        "Backlogs of any Pulsar cluster from 4.0 on, by the series of its brokers. Counters cannot "
        "tell a slow consumer under a limit from a consumer that the limit holds.",
        [
            _now(),
            _backlogs(),
            _causes(),
            _publishing(),
            alert_row([*(backlogs[name] for name in _ANY_PULSAR),
                       *(quotas[name] for name in _QUOTAS)]),
        ],
        has_page=False,
    )  # fmt: skip
