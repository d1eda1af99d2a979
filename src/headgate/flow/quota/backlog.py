"""The backlog of a subscription: everything stored less everything done (law 4.1).

Both are cumulative since the topic was created, so an append touches no subscription. An entry is
done with everything in it if it is at or below the mark-delete position, before the first retained
entry, or acknowledged individually. An entry of which only some messages are acknowledged stays in
the backlog as one entry with all its bytes, and with the messages that are left; of such an entry
only the acknowledged messages count as done.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from headgate.base import block_sums
from headgate.base.ack_set import AckSet


class Index(Protocol):
    """The cumulative sums over all entries that a topic ever stored."""

    def messages_before(self, ordinal: int, /) -> int:
        """Messages of all entries before this one since the topic was created."""
        ...

    def bytes_before(self, ordinal: int, /) -> int:
        """Bytes of all entries before this one since the topic was created."""
        ...

    def running_totals(
        self, first: int, stop: int, /
    ) -> tuple[Sequence[int], Sequence[int], int, int] | None:
        """Running totals of messages and bytes, the ordinal that they begin with, and the last one
        that they have: ``stop``, or less. None if those of ``first`` are on the disk."""
        ...


class Amounts(NamedTuple):
    """How many entries, messages and bytes."""

    entries: int
    messages: int
    bytes: int


def stored_within(index: Index, first: int, stop: int) -> Amounts:
    """The amounts of the entries from ``first`` to before ``stop``, acknowledged or not."""
    return Amounts(
        stop - first,
        index.messages_before(stop) - index.messages_before(first),
        index.bytes_before(stop) - index.bytes_before(first),
    )


def acked_within(index: Index, acks: AckSet, first: int, stop: int) -> Amounts:
    """What is acknowledged individually of the entries from ``first`` to before ``stop``, which are
    above the mark-delete position.

    The cost is one step for each block whose sums are known, for each run of acknowledged entries
    in others, and for each partly acknowledged entry.
    """
    entries = messages = size_bytes = 0
    for piece in block_sums.pieces_of(acks, first, stop):
        sums = piece.sums
        if sums is None:
            sums = _sums_of_runs(index, acks, piece)
            block_sums.learn(acks, piece, sums)
        entries += sums[0]
        messages += sums[1]
        size_bytes += sums[2]
    return Amounts(entries, messages + acks.partial_messages(first, stop), size_bytes)


def learn_some(index: Index, acks: AckSet, first: int, stop: int, entries_max: int) -> int:
    """Find the sums of blocks of which they are not known, from ``first``, which is above the
    mark-delete position, to before ``stop``. Goes on until it has looked at ``entries_max``
    acknowledged entries, and up to a block more; returns at how many. With fewer, all are known."""
    looked_at = 0
    for piece in block_sums.pieces_of(acks, first, stop):
        if looked_at >= entries_max:
            break
        if piece.sums is None and piece.is_block:
            sums = _sums_of_runs(index, acks, piece)
            block_sums.learn(acks, piece, sums)
            looked_at += sums[0]
    return looked_at


def acked_bytes_within(index: Index, acks: AckSet, first: int, stop: int) -> int:
    """The bytes of the entries from ``first``, which is above the mark-delete position, to before
    ``stop`` that are acknowledged as a whole. Takes a short step for each run of them."""
    return _sums_of_runs(index, acks, block_sums.Piece(first, stop, None))[2]


def _sums_of_runs(index: Index, acks: AckSet, piece: block_sums.Piece) -> list[int]:
    """What is acknowledged in one piece. A start counts all runs of all subscriptions, so most of
    them take no look-up of their own."""
    entries = messages = size_bytes = 0
    counts: Sequence[int] = ()
    sizes: Sequence[int] = ()
    base = known_to = -1
    for start, last in acks.acked_ranges(piece.stop, piece.first):
        end = last + 1
        entries += end - start
        if end >= known_to:
            found = index.running_totals(start, piece.stop)
            if found is not None:
                counts, sizes, base, known_to = found
        if end < known_to:  # what is lost at an end may count in the totals alone
            messages += counts[end - base] - counts[start - base]
            size_bytes += sizes[end - base] - sizes[start - base]
        else:
            messages += index.messages_before(end) - index.messages_before(start)
            size_bytes += index.bytes_before(end) - index.bytes_before(start)
    return [entries, messages, size_bytes]


def newly_done(index: Index, acks: AckSet, first: int, stop: int) -> Amounts:
    """What becomes done when everything from ``first``, which is above the mark-delete position, to
    before ``stop`` is acknowledged: the stored amounts less those acknowledged already."""
    stored = stored_within(index, first, stop)
    acked = acked_within(index, acks, first, stop)
    return Amounts(
        stored.entries - acked.entries,
        stored.messages - acked.messages,
        stored.bytes - acked.bytes,
    )


def done_before(index: Index, acks: AckSet, first_kept: int, end: int) -> Amounts:
    """What is done of everything that was ever stored before ``end``. Entries before ``first_kept``
    are done. The backlog is what was stored before ``end`` less this."""
    below = min(max(acks.mark_delete + 1, first_kept), end)
    acked = acked_within(index, acks, below, end)
    return Amounts(
        below + acked.entries,
        index.messages_before(below) + acked.messages,
        index.bytes_before(below) + acked.bytes,
    )
