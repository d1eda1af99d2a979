"""The board of backlog quotas and storage."""

from __future__ import annotations

from typing import Any

from boards.alert_rules import alerts_of
from boards.panels import Panel, Query, Row, alert_row, board, share
from boards.selectors import OF_CLUSTER, OF_TOPIC, TOPIC, top

_NAME = "{{topic}} {{partition}}"
_LIMIT = f"pulsar_storage_backlog_quota_limit{{{OF_TOPIC}}} > 0"
_AGE_LIMIT = f"pulsar_storage_backlog_quota_limit_time{{{OF_TOPIC}}} > 0"
_WITH_TYPE = f"{_NAME} {{{{quota_type}}}}"


def _quotas() -> Row:
    return Row("Quotas", [
        share("Size quotas used", "Backlog of the slowest subscription as a part of the "
              "quota. BacklogQuotaSizeNearlyUsed begins at 80 %.",
              Query(top(f"pulsar_storage_backlog_size{{{OF_TOPIC}}} / ({_LIMIT})"), _NAME),
              threshold=0.8),
        share("Time quotas used", "Age of the oldest message as a part of the quota. "
              "BacklogQuotaAgeNearlyUsed begins at 80 %.",
              Query(top(f"(pulsar_storage_backlog_age_seconds{{{OF_TOPIC}}} >= 0) "
                        f"/ ({_AGE_LIMIT})"), _NAME), threshold=0.8),
        Panel("Breaks in", "The quotas that break next, at the present rate of growth; 0 "
              "while one is reached. BacklogQuotaBreaksSoon begins at 30 minutes.",
              [Query("bottomk($top, headgate_backlog_quota_seconds_to_breach"
                     f"{{{OF_TOPIC}}})", _WITH_TYPE)], unit="s", threshold=1800),
        share("Producers stopped", "Part of five minutes in which a quota held or refused "
              "producers. BacklogQuotaReached begins at a tenth.",
              Query(top(f"sum by ({TOPIC}, quota_type) (rate("
                        f"headgate_backlog_quota_stopped_seconds_total{{{OF_TOPIC}}}[5m]))"),
                    _WITH_TYPE), threshold=0.1),
        Panel("Messages evicted", "Messages a second that a quota took from subscriptions "
              "which had not acknowledged them.",
              [Query(top(f"sum by ({TOPIC}, quota_type) "
                         f"(rate(headgate_backlog_evicted_messages_total{{{OF_TOPIC}}}"
                         "[5m])) > 0"),
                     _WITH_TYPE)], unit="cps"),
        Panel("Producers held, disconnected and refused", "By a backlog quota.",
              [Query(top(f"headgate_backlog_quota_producers_held{{{OF_TOPIC}}} > 0"),
                     f"{_NAME} held"),
               Query(top("increase(headgate_backlog_quota_producers_closed_total"
                         f"{{{OF_TOPIC}}}[5m]) > 0"), f"{_NAME} disconnected in 5 min"),
               Query(top("increase(headgate_backlog_quota_producers_refused_total"
                         f"{{{OF_TOPIC}}}[5m]) > 0"), f"{_NAME} refused in 5 min")]),
    ])  # fmt: skip


def _storage() -> Row:
    return Row("Storage", [
        share("Disk free", "DiskNearlyFull begins below a tenth.",
              Query(f"headgate_disk_free_bytes{{{OF_CLUSTER}}} "
                    f"/ headgate_disk_size_bytes{{{OF_CLUSTER}}}", "{{cluster}}"),
              opens_topic=False),
        Panel("Disk full in", "At its growth; no series while it does not fill up. "
              "DiskFillsUp begins at four hours.",
              [Query(f"headgate_disk_full_in_seconds{{{OF_CLUSTER}}}", "{{cluster}}")],
              unit="s", threshold=14_400, opens_topic=False),
        Panel("Growth of the disk", "By what grows.",
              [Query(f"headgate_disk_growth_bytes_per_second{{{OF_CLUSTER}}}",
                     "{{cluster}} {{content}}")], unit="binBps", opens_topic=False),
        Panel("Bytes of the log", "By what they are needed for. Nothing needs pinned ones: "
              "StoragePinned begins where they are half.",
              [Query("sum by (cluster, log, state) "
                     f"(headgate_storage_bytes{{{OF_CLUSTER}}})",
                     "{{cluster}} {{log}} {{state}}")],
              unit="bytes", is_stacked=True, opens_topic=False),
        Panel("Topics that keep most", "Bytes of all entries held.",
              [Query(top(f"pulsar_storage_size{{{OF_TOPIC}}}"), _NAME)], unit="bytes"),
        Panel("Largest backlogs in bytes", "Of the slowest durable subscription of a topic."
              " SubscriptionKeepsStorage looks at those above 10 GiB.",
              [Query(top(f"pulsar_storage_backlog_size{{{OF_TOPIC}}}"), _NAME)],
              unit="bytes", threshold=10 * 1024**3),
    ])  # fmt: skip


def quotas_board() -> dict[str, Any]:
    """How full quotas and disk are, when they break, and what keeps the bytes."""
    backlogs = alerts_of("backlogs")
    return board(
        "quotas",
        "Headgate: backlog quotas and storage",
        "How full backlog quotas and the disk are, when they break, what they did, and what keeps "
        "the bytes.",
        [
            _quotas(),
            _storage(),
            alert_row([
                *alerts_of("backlog-quotas").values(), *alerts_of("disk").values(),
                backlogs["StoragePinned"], backlogs["SubscriptionKeepsStorage"],
            ]),
        ],
    )  # fmt: skip
