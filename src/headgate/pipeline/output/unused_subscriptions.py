"""Unused subscriptions: no consumer, no acknowledgement, no demonstrated rate. Pure.

Their backlogs grow as fast as their topics are published to. In a list by growth they would come
before all others, so lists and sums of backlogs show them apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

NO_CONSUMER_SHARE_MIN: Final = 0.99
"""The broker takes a little of the time even without a consumer."""


def unused(no_consumer_share: float, acked: int | None, proven_rate_per_s: float | None) -> bool:
    """Of a subscription over a range: whether it was without a consumer throughout, with nothing
    acknowledged, and without a rate that a consumer has demonstrated in the day before.

    None is what is not known. Where a consumer left before the range began, its demonstrated rate
    tells that it was there: that subscription is not unused.
    """
    return no_consumer_share >= NO_CONSUMER_SHARE_MIN and not acked and proven_rate_per_s is None


def is_unused(row: Mapping[str, Any]) -> bool:
    """:func:`unused` of one judgement of a range."""
    return unused(row["share_no_consumer"], row["acked"], row["proven_rate_per_s"])
