"""Names, instants and rates as the page prints them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

SHARE_SHOWN_MIN: Final = 0.005
"""The page leaves out smaller shares of time."""

Report = Mapping[str, Any]
"""An object of the JSON that the admin API answers."""


def rate_text(value: float) -> str:
    """A rate with thousands separated, and a fraction only below ten."""
    return f"{value:,.1f}" if abs(value) < 9.95 and value != int(value) else f"{value:,.0f}"


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
    """A sentence of the broker's, to stand on its own. A URL at its begin stays as it is."""
    if sentence.startswith(("http://", "https://")):
        return sentence
    return f"{sentence[0].upper()}{sentence[1:]}"


def drains_in_s(report: Report) -> float | None:
    """In how many seconds a backlog is gone at the pace at which it is consumed; None if that does
    not shrink it. Earlier releases do not tell it apart from messages that are lost."""
    if "drainsInS" in report:
        left_s: float | None = report["drainsInS"]
        return left_s
    backlog, growth = report["backlogMessages"], report["growthMessages"]
    return report["windowS"] * backlog / -growth if growth < 0 and backlog else None
