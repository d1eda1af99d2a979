"""Folders of tables with open backlogs, full quotas and missing telemetry."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headgate.pipeline.tables.attribution import BLAMES
from headgate.pipeline.tables.columns import HOUR_NS, MINUTE_NS
from headgate.pipeline.tables.episodes import EPISODES
from tests.unit.pipeline.play import T0
from tests.unit.pipeline.report.folder import NS, at, topic_key, write

NOW_NS = T0 + HOUR_NS + 20 * MINUTE_NS
"""The tables end here."""


def telemetry(root: Path, end_ns: int = NOW_NS, cluster: str = "c1") -> None:
    """One message, whose window ends at an instant."""
    place = at(end_ns - 1)
    row = {
        "date": place["date"],
        "hour": place["hour"],
        "kind": "batch",
        "cluster": cluster,
        "window_end_ns": end_ns,
    }
    write(root, "bronze_samples", [row], ("date", "hour", "kind"))


def segment(start_ns: int, end_ns: int, topic: str = NS + "slow", **more: Any) -> dict[str, Any]:
    """What of a backlog lies in an hour, all of it the consumer's fault."""
    place = at(start_ns)
    blamed = {f"blame_{b.lower()}_ns": (end_ns - start_ns) * (b == "CONSUMER") for b in BLAMES}
    plain = dict.fromkeys(EPISODES.column_names()) | topic_key(topic) | blamed
    return plain | {
        "date": place["date"],
        "hour": place["hour"],
        "subscription": "s",
        "segment_start_ns": start_ns,
        "segment_end_ns": end_ns,
        "continues_before": False,
        "continues_after": False,
        "is_open": False,
        "ending": "over",
        "minutes": (end_ns - start_ns) // MINUTE_NS,
        "peak_backlog_messages": 10,
        "peak_minute": place["minute"],
        "growth_messages": 5,
        "oldest_age_max_ns": MINUTE_NS,
        "cause": "CONSUMER",
        "completeness": 1.0,
        "evidence": "measured",
        "sentence": "A backlog.",
        **more,
    }  # fmt: skip


OPEN = {"is_open": True, "ending": "open"}


def open_segment(minutes: int = 15, topic: str = NS + "slow", **more: Any) -> dict[str, Any]:
    """A backlog that is open at the tables' end."""
    return segment(NOW_NS - minutes * MINUTE_NS, NOW_NS, topic, **OPEN, **more)
