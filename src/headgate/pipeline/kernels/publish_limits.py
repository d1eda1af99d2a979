"""The limit or quota behind a park cause, from one minute of a topic.

The record has the cause and the limits in force, but not which of two dimensions parked the SEND.
So the result names every limit that the cause can mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, Final

from headgate.base.park_cause import ParkCause
from headgate.base.texts import size_text, time_text
from headgate.base.units import INT64_MAX, NS_PER_S
from headgate.flow.limits.precedence import ADAPTIVE_SOURCE, EffectiveLimit
from headgate.flow.limits.rate_limit import Dimension, RateLimit

BROKER_LIMIT_COLUMNS: Final = tuple(
    f"broker_limit_{dimension.name.lower()}_{part}"
    for dimension in Dimension
    for part in ("per_s", "source")
)
"""Columns with the broker-wide publish limit at the minute's end; doubles and texts."""

Minute = Mapping[str, Any]
"""One topic's minute."""


@dataclass(frozen=True, slots=True)
class PublishLimit:
    """A publish limit and where it is set."""

    limit: RateLimit
    source: str


def limit_of(cause: ParkCause, minute: Minute) -> PublishLimit | None:
    """The limit of a cause at the minute's end; None if there was none, or it is not known.

    ``cause`` is one of ``PUBLISH_LIMITS``.
    """
    if cause is ParkCause.BROKER_RATE:
        known = [
            (minute[f"broker_limit_{name}_per_s"], minute[f"broker_limit_{name}_source"] or "")
            for name in ("messages", "bytes")
        ]
        return _named(known)
    messages, size = minute["publish_limit_messages_per_s"], minute["publish_limit_bytes_per_s"]
    sources = split_source(minute["publish_limit_source"] or "")
    wants_adaptive = cause is ParkCause.ADAPTIVE
    return _named(
        [
            (rate if (source == ADAPTIVE_SOURCE) is wants_adaptive else None, source)
            for rate, source in zip((messages, size), sources, strict=True)
        ]
    )


def _named(known: list[tuple[float | None, str]]) -> PublishLimit | None:
    """The limit from the rate and the source of each dimension.

    As a double the largest limit is one more than a limit may be.
    """
    amounts = [None if not rate else min(max(1, round(rate)), INT64_MAX) for rate, _ in known]
    if amounts == [None, None]:
        return None
    sources = [
        source for (_, source), amount in zip(known, amounts, strict=True) if amount is not None
    ]
    return PublishLimit(
        RateLimit(amounts[0], amounts[1]), " and ".join(dict.fromkeys(filter(None, sources)))
    )


def split_source(source: str) -> tuple[str, str]:
    """The sources of a topic's publish limit in messages and in bytes, from their common text.

    The text names both if they differ. If only one dimension is limited, it names only that source.
    """
    parts = source.split(" and ")
    if len(parts) == 2 and ADAPTIVE_SOURCE in parts:
        return parts[0], parts[1]
    effective = EffectiveLimit(None, source)
    return effective.source_of(Dimension.MESSAGES), effective.source_of(Dimension.BYTES)


def quota_of(minute: Minute) -> tuple[str, str] | None:
    """Text and source of the backlog quota in force at the minute's end; None if there was none.

    Of two it is the fuller one. At equal use it is the size quota, which is the one that parks.
    """
    size, time_ns = minute["quota_size_limit_bytes"], minute["quota_time_limit_ns"]
    known = []
    if size is not None:
        known.append((_use(minute["backlog_bytes"], size), "size", size_text(size)))
    if time_ns is not None:
        text = time_text(time_ns / NS_PER_S)
        known.append((_use(minute["oldest_age_ns"], time_ns), "time", text))
    if not known:
        return None
    _, kind, text = max(known, key=lambda quota: quota[0])
    words = (minute[f"quota_{kind}_source"], minute[f"quota_{kind}_policy"])
    return text, ", ".join(filter(None, words))


def _use(taken: int | None, limit: int) -> float:
    return (taken or 0) / limit if limit > 0 else inf
