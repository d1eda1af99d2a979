"""``/metrics`` texts of a Pulsar broker, in steady situations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

T0_MS = 1_763_719_200_000
"""2025-11-21T10:00:00Z."""
STEP_S = 15
CLUSTER = "east"
EVICTIONS = "pulsar_storage_backlog_quota_exceeded_evictions_total"


@dataclass(frozen=True)
class Situation:
    """One subscription's steady behaviour; rates in messages a second."""

    name: str
    verdict: str
    """What it was built to be."""
    published: int
    acked: int
    consumers: int = 1
    held: int = 0
    """Messages with consumers."""
    events: tuple[str, int] = ("topic", 0)
    """A limiter and its events in a minute, for what it counts in messages."""
    batch: int = 1
    """Messages in an entry."""

    @property
    def topic(self) -> str:
        return f"persistent://acme/shop/{self.name}"


SITUATIONS = (
    Situation("slow", "CONSUMER", 500, 100, held=1_000),
    Situation("stuck", "CONSUMER", 50, 0, held=200),
    Situation("alone", "NO_CONSUMER", 200, 0, consumers=0, batch=20),
    Situation("sub-limit", "THROTTLED_SUBSCRIPTION", 500, 200, held=20,
              events=("subscription", 58)),
    Situation("topic-limit", "THROTTLED_TOPIC", 500, 100, held=5, events=("topic", 60), batch=10),
    Situation("broker-limit", "THROTTLED_BROKER", 500, 150, held=15, events=("broker", 240)),
    Situation("busy", "CONSUMER", 600, 400, held=900, events=("subscription", 50)),
    Situation("keeps-up", "NONE", 300, 300, held=12),
    Situation("limited-idle", "NONE", 10, 10, held=1, events=("subscription", 600)),
    Situation("idle", "NONE", 0, 0),
)  # fmt: skip


def text_of(
    at_s: int, situations: Sequence[Situation] = SITUATIONS, *, since_s: int = 0, more: str = ""
) -> str:
    """The text ``at_s`` seconds after :data:`T0_MS`; counters count from ``since_s`` on, backlogs
    from 0."""
    lines = []
    for each in situations:
        topic = f'cluster="{CLUSTER}",namespace="acme/shop",topic="{each.topic}"'
        subscription = f'{topic},subscription="s"'
        counted_s, acked_ms = at_s - since_s, T0_MS + 1_000 * at_s * (each.acked > 0)
        waiting = each.held + (each.published - each.acked) * at_s
        reason, in_minute = each.events
        values = {
            f"pulsar_in_messages_total{{{topic}}}": each.published * counted_s,
            f"pulsar_in_bytes_total{{{topic}}}": 100 * each.published * counted_s,
            f"pulsar_rate_in{{{topic}}}": f"{each.published}.0",
            f"pulsar_storage_write_rate{{{topic}}}": each.published / each.batch,
            f"pulsar_producers_count{{{topic}}}": 1,
            f"pulsar_storage_backlog_size{{{topic}}}": 100 * waiting,
            f"pulsar_storage_backlog_quota_limit{{{topic}}}": 10_000_000,
            f"pulsar_storage_backlog_quota_limit_time{{{topic}}}": -1,
            f"pulsar_storage_backlog_age_seconds{{{topic}}}": -1,
            f'{EVICTIONS}{{{topic},quota_type="size"}}': 0,
            f"pulsar_subscription_back_log{{{subscription}}}": -(-waiting // each.batch),
            f"pulsar_subscription_delayed{{{subscription}}}": 0,
            f"pulsar_subscription_unacked_messages{{{subscription}}}": each.held,
            f"pulsar_subscription_blocked_on_unacked_messages{{{subscription}}}": 0,
            f"pulsar_subscription_consumers_count{{{subscription}}}": each.consumers,
            f"pulsar_subscription_msg_ack_rate{{{subscription}}}": each.acked,
            f"pulsar_subscription_last_acked_timestamp{{{subscription}}}": acked_ms,
            f"pulsar_subscription_last_mark_delete_advanced_timestamp{{{subscription}}}": acked_ms,
            f"pulsar_out_messages_total{{{subscription}}}": each.acked * counted_s,
            f"pulsar_out_bytes_total{{{subscription}}}": 100 * each.acked * counted_s,
        }
        for level in ("subscription", "topic", "broker"):
            name = "pulsar_subscription_dispatch_throttled_{}_events"
            events = in_minute * counted_s // 60 if level == reason else 0
            values[f'{name.format("msg")}{{{subscription},reason="{level}"}}'] = events
            values[f'{name.format("bytes")}{{{subscription},reason="{level}"}}'] = 0
        lines += [f"{series} {value}" for series, value in values.items()]
    return "\n".join(lines) + "\n" + more


def write_scrapes(
    folder: Path, steps: Sequence[int], situations: Sequence[Situation] = SITUATIONS
) -> None:
    """Scrapes of the steps, :data:`STEP_S` apart, into a broker's folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for step in steps:
        text = text_of(step * STEP_S, situations)
        (folder / f"{T0_MS + 1_000 * STEP_S * step}.prom").write_text(text, encoding="utf-8")
