"""Which acknowledged entries retention still covers, and which whole ledgers may be trimmed.

As in Pulsar, either bound alone releases acknowledged entries: those older than the time bound and
those over the size bound. A bound of -1 releases nothing, a bound of 0 everything. Entries are
trimmed by whole ledgers. A time bound releases at a known time, a size bound by what is published.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple, Protocol

from headgate.base.units import MS_PER_S

RECHECK_MS: Final = 60 * MS_PER_S
"""When to look again at a topic whose entries no known event and no known time releases: those over
the size bound, and those of a ledger that waits for a reader."""


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

    def ordinal_with_bytes_before(self, size_bytes: int, first: int, stop: int, /) -> int:
        """The first ordinal from ``first`` to before ``stop`` before which there are at least so
        many bytes; ``stop`` if there is none."""

    def received_ms(self, ordinal: int, /) -> int:
        """When the broker received a retained entry, as a time of the log."""


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
        # The last end with at most so many bytes before it.
        beyond = entries.ordinal_with_bytes_before(over_bytes + 1, entries.first, entries.end + 1)
        over_size = max(beyond - 1, entries.first)
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


class OldestLedger(NamedTuple):
    """The oldest ledger with retained entries."""

    first: int
    """Its first retained entry."""
    stop: int
    """One past its last entry."""
    ends_ms: int | None
    """When it ends for its age although nobody has acknowledged an entry of it; None if it has
    ended."""


def next_look_ms(
    entries: RetainedEntries,
    ledger: OldestLedger,
    acknowledged_end: int,
    time_ms: int,
    size_bytes: int,
    log_ms: int,
    *,
    is_acknowledged: bool,
) -> int | None:
    """When time or a publish may release a topic's oldest ledger, as a time of the log; None if
    only an acknowledgement can, or another event that the broker notices.

    ``acknowledged_end``, ``time_ms``, ``size_bytes`` and ``log_ms`` are as for
    :func:`releasable_end`, which has just released nothing of ``ledger``. ``is_acknowledged`` says
    whether a durable subscription acknowledged the entries before ``acknowledged_end``.
    """
    is_open = ledger.ends_ms is not None
    if acknowledged_end <= ledger.first or not (is_open or ledger.stop <= acknowledged_end):
        return None
    by_size_ms = log_ms + RECHECK_MS if size_bytes > 0 else None
    if time_ms < 0 and size_bytes:
        return by_size_ms
    is_at_once = time_ms == 0 or size_bytes == 0
    last = ledger.first if is_open else ledger.stop - 1
    due_ms = log_ms if is_at_once else entries.received_ms(last) + time_ms
    if ledger.ends_ms is not None and (due_ms <= log_ms or not is_acknowledged):
        due_ms = max(due_ms, ledger.ends_ms)
        if is_acknowledged:  # a connected reader is behind
            due_ms = min(due_ms, log_ms + RECHECK_MS)
    return due_ms if by_size_ms is None else min(due_ms, by_size_ms)
