"""Bounds receive times of a log that an earlier release kept by the wall clock.

A log of an earlier release has the receive times that the wall clock said. One message that was
stored while that was ten years ahead would hold its topic there: receive times never run backwards.
So the start that takes such a log over bounds all times in it by the time that it is then, for
good: segments that were there keep what they say, and whatever reads them is told the bound.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from headgate.ledger.index.topic_log import TopicLog


class ReceiveTimeBound(NamedTuple):
    """What was stored in segments before ``before_segment`` was received by ``received_ms`` at the
    latest."""

    before_segment: int | None
    """None: everything that the log holds."""
    received_ms: int


def bound_times(topics: Iterable[TopicLog], bound: ReceiveTimeBound) -> int:
    """Bound the times in the indexes; return how many topics said a later one."""
    return sum(topic.bound_times(bound.before_segment, bound.received_ms) for topic in topics)
