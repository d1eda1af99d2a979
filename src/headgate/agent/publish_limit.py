"""Whether a topic's publish limit probably holds its producers: a law.

A cluster tells neither what waits in front of a broker nor for how long. It tells how much was
published; an amount that stays at the limit look after look says that producers would send more.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from headgate.base.units import NS_PER_S
from headgate.flow.limits.precedence import EffectiveLimit
from headgate.flow.limits.rate_limit import Dimension
from headgate.flow.sentences.backlog import limit_text

AT_LIMIT_SHARE: Final = 0.95
"""A rate of this part of a limit is at it."""
PERIODS: Final = 4
"""Times between looks that are judged, the last ones."""
PERIODS_MIN: Final = 3
"""As many of them must be at the limit. Of fewer nothing is said."""


class Published(NamedTuple):
    """What had been published at an instant; None if not known."""

    at_ns: int
    messages: int | None
    bytes: int | None


def publish_limit_sentence(published: Sequence[Published], effective: EffectiveLimit) -> str:
    """That the publish limit holds producers, without full stop; empty where that is not shown.

    Args:
        published: by look, in order of time.
        effective: the topic's publish limit.
    """
    limit = effective.limit
    periods = list(pairwise(published))[-PERIODS:]
    if limit is None or len(periods) < PERIODS:
        return ""
    for dimension in Dimension:
        per_s = limit.per_second(dimension)
        if not per_s:
            continue
        rates = [_rate(first, last, dimension) for first, last in periods]
        at_limit = [rate for rate in rates if rate is not None and rate >= AT_LIMIT_SHARE * per_s]
        if len(at_limit) >= PERIODS_MIN:
            share = sum(at_limit) / len(at_limit) / per_s
            return (
                f"the topic's publish limit of {limit_text(limit, dimension)}"
                f" ({effective.source_of(dimension)}) probably holds producers:"
                f" {min(share, 1.0):.0%} of it is published, in {len(at_limit)} of the last"
                f" {PERIODS} looks"
            )
    return ""


def _rate(first: Published, last: Published, dimension: Dimension) -> float | None:
    """Amount a second; None if it is not known, or the topic was loaded again."""
    field = "messages" if dimension is Dimension.MESSAGES else "bytes"
    before, now = getattr(first, field), getattr(last, field)
    elapsed_ns = last.at_ns - first.at_ns
    if before is None or now is None or now < before or elapsed_ns <= 0:
        return None
    return float((now - before) * NS_PER_S / elapsed_ns)
