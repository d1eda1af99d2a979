"""The board of backlogs and their causes."""

from __future__ import annotations

from typing import Any, Final

from boards.alert_rules import alerts_of
from boards.panels import Panel, Query, Row, alert_row, board, figure, share
from boards.selectors import (
    BROKER_STATES,
    CONSUMER_STATES,
    LIMIT_STATES,
    OF_TOPIC,
    STATE_SECONDS,
    SUBSCRIPTION,
    top,
)

_WAITING = f"pulsar_subscription_back_log_no_delayed{{{OF_TOPIC}}}"
_NAME = "{{topic}} {{partition}} {{subscription}}"
_COLORS = {
    "consumer": "#0072b2", "no consumer": "#56b4e9", "subscription limit": "#e69f00",
    "topic limit": "#d55e00", "broker limit": "#cc79a7", "broker": "#009e73",
}  # fmt: skip

_CAUSES: Final = {
    "consumer": CONSUMER_STATES,
    "no consumer": 'state="no_consumer"',
    "subscription limit": 'state="throttled_subscription",consumer="hungry"',
    "topic limit": 'state="throttled_topic",consumer="hungry"',
    "broker limit": 'state="throttled_broker",consumer="hungry"',
    "broker": BROKER_STATES,
}


def _time_in(states: str) -> str:
    """Seconds per second: how many subscriptions are in these states, on average."""
    return f"sum(rate({STATE_SECONDS}{{{OF_TOPIC},{states}}}[$__rate_interval]))"


def _share_of(states: str, labels: str = SUBSCRIPTION) -> str:
    """The part of a quarter of an hour, as the alerts look at it."""
    return f"sum by ({labels}) (rate({STATE_SECONDS}{{{OF_TOPIC},{states}}}[15m]))"


def _now() -> Row:
    return Row("Now", [
        figure("Subscriptions with messages waiting", "Those with an entry in the backlog "
               "that is due.", f"count({_WAITING} > 0) or vector(0)"),
        figure("Entries waiting", "Of all subscriptions.", f"sum({_WAITING})"),
        figure("Oldest message", "The age of the oldest message that a durable "
               "subscription has not acknowledged.",
               f"max(pulsar_storage_backlog_age_seconds{{{OF_TOPIC}}} >= 0) or vector(0)",
               "s"),
        figure("Without a consumer", "Subscriptions with messages and no consumer.",
               f"count({_WAITING} > 0 unless on ({SUBSCRIPTION}) "
               f"(pulsar_subscription_consumers_count{{{OF_TOPIC}}} > 0)) or vector(0)"),
    ])  # fmt: skip


def _causes() -> Row:
    return Row("Causes", [
        Panel("Subscriptions by what holds them",
              "How many subscriptions each cause holds, on average. Messages in flight "
              "count as consumer's, so a healthy one is partly there, too.",
              [Query(_time_in(states), name) for name, states in _CAUSES.items()],
              unit="none", width=24, is_stacked=True, opens_topic=False, colors=_COLORS),
        share("Held by the consumer", "Part of 15 minutes in which the consumers were to "
              "blame. With an old backlog the alert ConsumerIsBottleneck begins at half.",
              Query(top(_share_of(CONSUMER_STATES)), _NAME), threshold=0.5),
        share("Held by a limit", "Part of 15 minutes in which a dispatch limit held a "
              "consumer with room. LimitHoldsHungryConsumer begins at half.",
              Query(top(_share_of(LIMIT_STATES, f"{SUBSCRIPTION}, state")),
                    f"{_NAME} {{{{state}}}}"), threshold=0.5),
        share("Held by the broker", "Part of 15 minutes in which the disk or the broker "
              "itself was to blame. BrokerHoldsBacklog begins at half.",
              Query(top(_share_of(BROKER_STATES)), _NAME), threshold=0.5),
        Panel("Without a consumer", "Entries that wait for a subscription without a "
              "consumer. NoConsumer begins after ten minutes.",
              [Query(top(f"({_WAITING} > 0 unless on ({SUBSCRIPTION}) "
                         f"(pulsar_subscription_consumers_count{{{OF_TOPIC}}} > 0))"),
                     _NAME)]),
    ])  # fmt: skip


def _backlogs() -> Row:
    return Row("Backlogs", [
        Panel("Largest backlogs", "Entries that are not acknowledged and due.",
              [Query(top(_WAITING), _NAME)]),
        Panel("Oldest messages", "Age of the oldest message that a durable subscription of "
              "the topic has not acknowledged.",
              [Query(top(f"pulsar_storage_backlog_age_seconds{{{OF_TOPIC}}} >= 0"),
                     "{{topic}} {{partition}}")], unit="s", threshold=300),
        Panel("Fastest growth", "Entries a second, over ten minutes.",
              [Query(top(f"deriv({_WAITING}[10m]) > 0"), _NAME)], unit="cps"),
        Panel("Acknowledged", "Messages a second of the subscriptions that acknowledge "
              "most.",
              [Query(top(f"pulsar_subscription_msg_ack_rate{{{OF_TOPIC}}}"), _NAME)],
              unit="cps"),
        Panel("Messages with consumers", "Handed over and not acknowledged.",
              [Query(top(f"pulsar_subscription_unacked_messages{{{OF_TOPIC}}}"), _NAME)]),
        Panel("Returned for redelivery", "Messages a second.",
              [Query(top(f"pulsar_subscription_msg_rate_redeliver{{{OF_TOPIC}}} > 0"),
                     _NAME)], unit="cps"),
    ])  # fmt: skip


def backlogs_board() -> dict[str, Any]:
    """Which backlogs there are, whose fault each is, since when."""
    return board(
        "backlogs",
        "Headgate: backlogs and their causes",
        "Which backlogs there are and whose fault each is, by the broker's account of time.",
        [
            _now(),
            _causes(),
            _backlogs(),
            alert_row([
                *alerts_of("backlogs").values(), *alerts_of("damage").values(),
                *alerts_of("agent").values(),
            ]),
        ],
    )  # fmt: skip
