"""The board of publishing and adaptive throttling."""

from __future__ import annotations

from typing import Any

from boards.alert_rules import alerts_of
from boards.panels import Panel, Query, Row, alert_row, board, share
from boards.selectors import OF_CLUSTER, OF_TOPIC, TOPIC, top

_NAME = "{{topic}} {{partition}}"


def _own(title: str, meaning: str, series: str, unit: str = "short", **fields: Any) -> Panel:
    """A panel of one series of the broker."""
    query = Query(f"{series}{{{OF_CLUSTER}}}", "{{cluster}}")
    return Panel(title, meaning, [query], unit=unit, opens_topic=False, **fields)


def _publishing() -> Row:
    return Row("Publishing", [
        Panel("Published", "Messages a second of the topics with most.",
              [Query(top(f"pulsar_rate_in{{{OF_TOPIC}}}"), _NAME)], unit="cps"),
        Panel("Bytes published", "Of the topics with most.",
              [Query(top(f"pulsar_throughput_in{{{OF_TOPIC}}}"), _NAME)], unit="binBps"),
        share("What producers wait for", "Part of five minutes in which a message waited, "
              "by cause. PublishesThrottled begins at half.",
              Query(top(f"sum by ({TOPIC}, cause) (rate("
                        f"headgate_publish_parked_seconds_total{{{OF_TOPIC}}}[5m]))"),
                    f"{_NAME} {{{{cause}}}}"), threshold=0.5),
        Panel("Messages that wait", "Received, not stored yet.",
              [Query(top(f"headgate_publish_parked_messages{{{OF_TOPIC}}}"),
                     f"{_NAME} {{{{cause}}}}")]),
    ])  # fmt: skip


def _durability() -> Row:
    return Row("Becoming durable", [
        Panel("Time of a commit", "Mean and longest. No receipt is sent before it ends. "
              "DiskSlow begins at a mean of 0.1 s.",
              [Query(f"rate(headgate_commit_seconds_total{{{OF_CLUSTER}}}[5m]) "
                     f"/ (rate(headgate_commits_total{{{OF_CLUSTER}}}[5m]) > 0)",
                     "{{cluster}} mean"),
               Query(f"headgate_commit_longest_seconds{{{OF_CLUSTER}}}",
                     "{{cluster}} longest")], unit="s", threshold=0.1, opens_topic=False),
        _own("Age of the running commit", "DiskStandsStill begins at ten seconds.",
             "headgate_commit_running_seconds", "s", threshold=10),
        Panel("Memory of clients", "What clients make the broker hold, and its limit. The "
              "limit bounds neither parked, staged nor http.",
              [Query("sum by (cluster, kind) "
                     f"(headgate_client_memory_bytes{{{OF_CLUSTER}}})",
                     "{{cluster}} {{kind}}"),
               Query(f"headgate_client_memory_limit_bytes{{{OF_CLUSTER}}}",
                     "{{cluster}} limit")], unit="bytes", opens_topic=False),
        Panel("Connections", "Open ones, and those that are not read because of memory or "
              "unanswered messages.",
              [Query(f"pulsar_active_connections{{{OF_CLUSTER}}}", "{{cluster}} open"),
               Query(f"headgate_client_memory_slowed_connections{{{OF_CLUSTER}}}",
                     "{{cluster}} slowed for memory"),
               Query(f"pulsar_broker_throttled_connections{{{OF_CLUSTER}}}",
                     "{{cluster}} at their limit")], opens_topic=False),
        _own("Longest turn of the event loop", "Of the last minute.",
             "headgate_turn_longest_seconds", "s"),
    ])  # fmt: skip


def _adaptive() -> Row:
    return Row("Adaptive throttling (series are there while it is enabled)", [
        share("Pressure from memory", "Position between the watermarks. "
              "AdaptiveThrottleMemoryPressure begins at half.",
              Query(f"headgate_adaptive_memory_pressure{{{OF_CLUSTER}}}", "{{cluster}}"),
              threshold=0.5, opens_topic=False),
        Panel("Memory", "What the broker uses and could not free at once, of what it may.",
              [Query(f"headgate_adaptive_memory_used_bytes{{{OF_CLUSTER}}}",
                     "{{cluster}} used"),
               Query(f"headgate_adaptive_memory_limit_bytes{{{OF_CLUSTER}}}",
                     "{{cluster}} limit")], unit="bytes", opens_topic=False),
        _own("Topics slowed", "0 in observe-only mode. AdaptiveThrottleActive begins after "
             "ten minutes.", "headgate_adaptive_active_topics"),
        Panel("Limits begun", "In ten minutes. AdaptiveThrottleActivations begins at 20.",
              [Query("increase(headgate_adaptive_activations_total"
                     f"{{{OF_CLUSTER}}}[10m])", "{{cluster}}")], threshold=20,
              opens_topic=False),
        share("Rates reduced", "1 minus the allowed part of a topic's natural rate. Needs "
              "adaptivePublisherThrottlingPerTopicMetricsEnabled.",
              Query(top(f"headgate_adaptive_topic_rate_reduction_ratio{{{OF_TOPIC}}} > 0"),
                    _NAME)),
        Panel("Natural and allowed rates", "Of the topics with the highest rates.",
              [Query(top(f"headgate_adaptive_topic_natural_publish_rate{{{OF_TOPIC}}}"),
                     f"{_NAME} natural"),
               Query(top(f"headgate_adaptive_topic_effective_publish_rate{{{OF_TOPIC}}}"),
                     f"{_NAME} allowed")], unit="cps"),
    ])  # fmt: skip


def publishing_board() -> dict[str, Any]:
    """What producers wait for, and what the adaptive controller does about memory."""
    disk = alerts_of("disk")
    return board(
        "publishing",
        "Headgate: publishing and adaptive throttling",
        "What producers wait for, how fast messages become durable, and what the adaptive "
        "controller decides.",
        [
            _publishing(),
            _durability(),
            _adaptive(),
            alert_row([
                *alerts_of("adaptive-throttle").values(), disk["DiskSlow"],
                disk["DiskStandsStill"], disk["ConnectionsRefused"],
            ]),
        ],
    )  # fmt: skip
