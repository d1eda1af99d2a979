"""Which acknowledged entries retention still covers, and which whole ledgers may be trimmed.

As in Pulsar, either bound alone releases acknowledged entries: those older than the time bound and
those over the size bound. A bound of -1 releases nothing, a bound of 0 everything. Entries are
trimmed by whole ledgers.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Protocol


class RetainedEntries(Protocol):
    """The retained entries of one topic, by ordinal."""

    first: int
    """The first retained entry."""
    end: int
    """One past the last durable entry."""

    def ordinal_received_at_or_after(self, received_ms: int, /) -> int:
        """The first durable entry that the broker received then or later; ``end`` if none."""

    def bytes_before(self, ordinal: int, /) -> int:
        """Bytes of all entries before ``ordinal``, trimmed ones included."""


def releasable_end(
    entries: RetainedEntries, acknowledged_end: int, time_ms: int, size_bytes: int, log_ms: int
) -> int:
    """One past the last entry that neither a subscription nor retention needs any more.

    ``acknowledged_end`` is the first entry that some subscription has not acknowledged. ``time_ms``
    and ``size_bytes`` are the bounds of the retention, -1 for none. ``log_ms`` is the time of the
    log. The result is at least ``entries.first`` unless ``acknowledged_end`` is before it.
    """
    too_old = over_size = entries.first
    if time_ms == 0:
        too_old = entries.end  # also entries received under a clock that was ahead
    elif time_ms > 0:
        too_old = entries.ordinal_received_at_or_after(log_ms - time_ms + 1)
    if size_bytes == 0:
        over_size = entries.end
    elif size_bytes > 0:
        over_bytes = entries.bytes_before(entries.end) - size_bytes
        ends = range(entries.first, entries.end + 1)
        over_size += max(bisect_right(ends, over_bytes, key=entries.bytes_before) - 1, 0)
    return min(acknowledged_end, max(too_old, over_size))


def trimmable_end(first: int, ledger_ends: Iterable[int], releasable: int) -> int:
    """One past the last entry of the ledgers that end at or before ``releasable``.

    ``ledger_ends`` has one past the last entry of each ledger but the last, oldest first. ``first``
    is the first retained entry, which is the result if no whole ledger can be trimmed.
    """
    found = first
    for end in ledger_ends:
        if end > releasable:
            break
        found = end
    return found
