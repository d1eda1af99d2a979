"""Unused subscriptions: no consumer, no acknowledgement, no demonstrated rate. Pure.

Their backlogs grow as fast as their topics are published to. In a list by growth they would come
before all others, so lists and sums of backlogs show them apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

NO_CONSUMER_SHARE_MIN: Final = 0.99
"""Even without a consumer, a little of the time is the broker's."""


def unused(no_consumer_share: float, acked: int | None, proven_rate_per_s: float | None) -> bool:
    """Whether a subscription is unused over a range.

    It had no consumer, acknowledged nothing, and no consumer has demonstrated a rate in the day
    before. If a consumer left before the range began, its demonstrated rate shows that the
    subscription is used. None: unknown.
    """
    return no_consumer_share >= NO_CONSUMER_SHARE_MIN and not acked and proven_rate_per_s is None


def is_unused(row: Mapping[str, Any]) -> bool:
    """:func:`unused` of one judgement of a range."""
    return unused(row["share_no_consumer"], row["acked"], row["proven_rate_per_s"])
