"""Bounds receive times of a log that an earlier release kept by the wall clock.

The receive times of such a log are those of the wall clock. If one message was stored while that
clock was ten years ahead, all later messages of its topic would stay there, because receive times
never run backwards. So the start that takes over such a log bounds its times by the present time,
once and for all. The files keep their times; every reader of old segments applies the bound.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from headgate.ledger.index.topic_log import TopicLog

_FIRST_SEGMENT: Final = 1
"""The number of the first segment of every log."""


class ReceiveTimeBound(NamedTuple):
    """A bound of ``received_ms`` on the receive times in segments before ``before_segment``."""

    before_segment: int | None
    """None: all segments."""
    received_ms: int


def bound_times(topics: Iterable[TopicLog], bound: ReceiveTimeBound) -> int:
    """Bound the times in the indexes; return how many topics had a later one.

    A topic without entries does not say in which segment its last one was, so the bound holds for
    it, unless no segment is as old.
    """
    if bound.before_segment is not None and bound.before_segment <= _FIRST_SEGMENT:
        return 0
    return sum(topic.bound_times(bound.before_segment, bound.received_ms) for topic in topics)
