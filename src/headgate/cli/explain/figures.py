"""Names, instants, rates and sizes as the page prints them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from headgate.base.units import S_PER_DAY

MINUTE_S: Final = 60
HOUR_S: Final = 3_600

SHARE_SHOWN_MIN: Final = 0.005
"""The page leaves out smaller shares of time."""

Report = Mapping[str, Any]
"""An object of the JSON that the admin API answers."""


def time_text(seconds: float) -> str:
    """A length of time in at most two units: ``3 s``, ``12 min``, ``2 h 5 min``, ``3 d 4 h``."""
    whole = round(seconds)
    if whole < 2 * MINUTE_S:
        return f"{whole} s"
    minutes = round(seconds / MINUTE_S)
    if minutes < 2 * MINUTE_S:
        return f"{minutes} min"
    if whole < 2 * S_PER_DAY:
        hours, rest = divmod(minutes, 60)
        return f"{hours} h {rest} min" if rest else f"{hours} h"
    days, rest = divmod(round(seconds / HOUR_S), 24)
    return f"{days} d {rest} h" if rest else f"{days} d"


def rate_text(value: float) -> str:
    """A rate with thousands separated, and a fraction only below ten."""
    return f"{value:,.1f}" if abs(value) < 9.95 and value != int(value) else f"{value:,.0f}"


def size_text(bytes_: float) -> str:
    """An amount of data: ``312 B``, ``29.5 kB``, ``1.2 GB``."""
    value = float(bytes_)
    for unit in ("B", "kB", "MB"):
        if value < 999.5:
            return f"{value:.0f} B" if unit == "B" else f"{value:.3g} {unit}"
        value /= 1_000
    return f"{value:,.3g} GB" if value < 999.5 else f"{value:,.0f} GB"


def count_text(number: int, what: str) -> str:
    """A number of things: ``1 consumer``, ``2 consumers``."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def topic_title(report: Report) -> str:
    """A topic's short name, with its number of partitions if it is partitioned."""
    partitions = report["partitions"]
    name = short_name(report["topic"])
    return f"{name} ({count_text(partitions, 'partition')})" if partitions else name


def short_name(topic: str) -> str:
    """A topic's name as people type it: ``acme/shop/orders``."""
    return topic.removeprefix("persistent://")


def instant_text(text: str) -> str:
    """An instant of the JSON: ``2026-11-21 18:18:35 UTC``."""
    return f"{text[:10]} {text[11:19]} UTC"


def capitalized(sentence: str) -> str:
    """A sentence of the broker's, to stand on its own."""
    return f"{sentence[0].upper()}{sentence[1:]}"
