"""The index of a range of a topic's entries, as columns."""

from __future__ import annotations

from array import array
from typing import NamedTuple


class TopicTotals(NamedTuple):
    """Running totals of a topic before an ordinal: what an index that starts there needs."""

    messages: int
    """Messages since the topic's creation."""
    size_bytes: int
    """Bytes of bodies since the topic's creation."""
    received_ms: int
    """The receive time of the entry before; 0 if there never was one."""
    publish_lag_ms: int
    """The publish lag of that entry."""


class Columns(NamedTuple):
    """The index of a range of entries. Every column but the offsets has one element more: it begins
    with the value of the entry before the range."""

    offsets: array[int]
    """Offsets of the records in their segment."""
    received: array[int]
    """Receive times in milliseconds."""
    publish_lags: array[int]
    """Publish lags in milliseconds."""
    messages: array[int]
    """Messages of the topic up to and with each entry."""
    sizes: array[int]
    """Bytes of the topic up to and with each entry."""

    def totals_before(self) -> TopicTotals:
        """The topic's totals before the range."""
        return TopicTotals(self.messages[0], self.sizes[0], self.received[0], self.publish_lags[0])
