"""One sentence about whether the disk fills up: when it is full, and what fills it.

``explain`` and the health check print it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from headgate.base.texts import duration, size_text, time_text
from headgate.flow.disk_forecast import FULL_IN_S_MAX, DiskForecast, Filling, Growth
from headgate.flow.topic_growth import TopicGrowth

PART_MIN: Final = 0.05
"""The sentence leaves out what has a smaller part of the growth."""
TOPICS_SHOWN_MAX: Final = 3
_FULL_AT_ONCE_S: Final = 1.0
_KILO: Final = 1_000.0


@dataclass(frozen=True, slots=True)
class FillingFacts:
    """What the sentence says; ``full_in_s`` counts from now. ``topics`` are those that grow most,
    the fastest first; empty if unknown."""

    forecast: DiskForecast
    full_in_s: float | None = None
    topics: Sequence[TopicGrowth] = ()
    is_held_for_backup: bool = False
    """Whether a running backup keeps the logs from freeing files."""
    full_s: float | None = None
    """For how many seconds producers have waited for room; None while they do not."""


def filling_sentence(facts: FillingFacts) -> str:
    """Whether the disk fills up, and by what, without line break and full stop."""
    forecast, growth = facts.forecast, facts.forecast.growth
    if facts.full_s is not None:
        since = f", for {duration(facts.full_s)} now" if facts.full_s >= 1 else ""
        return (
            f"the disk is full: producers wait for room{since}, consumers continue; consume, skip "
            "or delete what keeps messages"
        )
    if growth is None:
        return _unknown(forecast)
    window = f"the last {time_text(growth.span_s)}"
    if forecast.filling is Filling.FILLING:
        full_in_s = facts.full_in_s or 0.0
        when = "any moment" if full_in_s < _FULL_AT_ONCE_S else f"in {time_text(full_in_s)}"
        return (
            f"the disk is full {when} at the growth of {window}, {_growth_text(facts, growth)}; "
            "then producers wait for room, and consumers continue"
        )
    if forecast.filling is Filling.STEADY:
        return (
            f"the disk does not fill up: what was written in {window} was freed again, "
            f"up to {size_text(forecast.amplitude_bytes)} at a time"
        )
    if growth.total_per_s <= 0:
        return f"the disk does not fill up: it did not grow in {window}"
    return (
        f"the disk is not full within {time_text(FULL_IN_S_MAX)} at the growth of {window}, "
        f"{_growth_text(facts, growth)}"
    )


def _unknown(forecast: DiskForecast) -> str:
    if forecast.known_in_s is None:
        return (
            "whether the disk fills up is not known yet: the file system has not told its free "
            "space"
        )
    return (
        f"whether the disk fills up is known in {time_text(forecast.known_in_s)}: the broker "
        "measures its growth for two minutes, and for up to twelve while it is not steady"
    )


def _growth_text(facts: FillingFacts, growth: Growth) -> str:
    """``11.4 MiB/s: 8.6 MiB/s by acme/shop/orders, 2.9 MiB/s by files outside the logs``."""
    parts = [part for part in _parts(facts, growth) if part]
    return f"{size_text(growth.total_per_s)}/s" + (f": {', '.join(parts)}" if parts else "")


def _parts(facts: FillingFacts, growth: Growth) -> list[str]:
    shown_min = PART_MIN * growth.total_per_s
    topics = [topic for topic in facts.topics if topic.bytes_per_s >= shown_min]
    topics = topics[:TOPICS_SHOWN_MAX]
    parts = [
        f"{size_text(topic.bytes_per_s)}/s by {topic.topic.removeprefix('persistent://')}"
        for topic in topics
    ]
    rest_per_s = growth.retained_per_s - sum(topic.bytes_per_s for topic in topics)
    unneeded = (
        "by records that no topic needs, which are freed when the running backup ends"
        if facts.is_held_for_backup
        else "by records that no topic needs, beside retained ones"
    )
    for per_s, what in (
        (rest_per_s, "by other topics" if topics else "by retained messages"),
        (growth.unneeded_per_s, unneeded),
        (growth.other_per_s, "by files outside the logs"),
    ):
        if per_s >= shown_min and per_s > 0:
            parts.append(f"{size_text(per_s)}/s {what}")
        elif per_s <= -shown_min and per_s < 0:
            parts.append(f"less {size_text(-per_s)}/s of {what.removeprefix('by ')}")
    return parts
