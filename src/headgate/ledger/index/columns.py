"""The index of a range of a topic's entries, as columns."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import NamedTuple

RunningTotals = tuple[Sequence[int], Sequence[int], int, int]
"""Running totals over consecutive entries: of their messages, of their bytes, the entry whose
totals come first in both, and one past the last entry; see :mod:`headgate.engine.ports`."""


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


def cut_columns(columns: Columns, first: int, end: int) -> Columns:
    """The columns of entries ``first`` to ``end``, counted from the beginning."""
    offsets, received, publish_lags, messages, sizes = columns
    return Columns(
        offsets[first:end],
        received[first : end + 1],
        publish_lags[first : end + 1],
        messages[first : end + 1],
        sizes[first : end + 1],
    )


def shifted(columns: Columns, messages: int, size_bytes: int) -> Columns:
    """The same columns with totals that are higher by these numbers."""
    if messages:
        columns.messages[:] = array("q", (value + messages for value in columns.messages))
    if size_bytes:
        columns.sizes[:] = array("q", (value + size_bytes for value in columns.sizes))
    return columns


def extend_columns(columns: Columns, more: Columns) -> None:
    """Append the columns of the entries that follow; the first columns may be empty."""
    columns.offsets.extend(more.offsets)
    for column, values in zip(columns[1:], more[1:], strict=True):
        column.extend(values[1:] if column else values)
