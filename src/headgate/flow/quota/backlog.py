"""The backlog of a subscription: everything stored less everything done (law 4.1).

Both are cumulative since the topic was created, so an append touches no subscription. Entries that
are passed (at or below mark delete, or before the first that is still retained) are done with all
that they hold, and so are entries acknowledged one by one above that. An entry of which only some
messages are acknowledged is never split: it stays in the backlog as one entry with all its bytes,
and only with the messages that are left. So such entries add to the done messages and to nothing
else.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from headgate.base.ack_set import AckSet


class Index(Protocol):
    """What is known of all entries that a topic ever stored."""

    def messages_before(self, ordinal: int, /) -> int:
        """Messages of all entries before this one since the topic was created."""
        ...

    def bytes_before(self, ordinal: int, /) -> int:
        """As :meth:`messages_before`, in bytes."""
        ...


class Amounts(NamedTuple):
    """Of some entries."""

    entries: int
    messages: int
    bytes: int


def stored_within(index: Index, first: int, stop: int) -> Amounts:
    """What the entries from ``first`` to before ``stop`` hold, whether acknowledged or not."""
    return Amounts(
        stop - first,
        index.messages_before(stop) - index.messages_before(first),
        index.bytes_before(stop) - index.bytes_before(first),
    )


def acked_within(index: Index, acks: AckSet, first: int, stop: int) -> Amounts:
    """What is acknowledged above mark delete of the entries from ``first`` to before ``stop``.

    Costs a step for each run of entries acknowledged one by one, and one for each partly
    acknowledged entry, of which there may be none.
    """
    entries = messages = size_bytes = 0
    for run_first, run_last in acks.acked_runs(stop):
        start, end = max(run_first, first), run_last + 1
        if start < end:
            entries += end - start
            messages += index.messages_before(end) - index.messages_before(start)
            size_bytes += index.bytes_before(end) - index.bytes_before(start)
    return Amounts(entries, messages + acks.partial_messages(first, stop), size_bytes)


def newly_done(index: Index, acks: AckSet, first: int, stop: int) -> Amounts:
    """What becomes done when everything from ``first``, which is above mark delete, to before
    ``stop`` does: what it holds less what is acknowledged of it already."""
    stored = stored_within(index, first, stop)
    acked = acked_within(index, acks, first, stop)
    return Amounts(
        stored.entries - acked.entries,
        stored.messages - acked.messages,
        stored.bytes - acked.bytes,
    )


def done_before(index: Index, acks: AckSet, first_kept: int, end: int) -> Amounts:
    """All that is done of what was ever stored before ``end``; nothing is owed of entries before
    ``first_kept``. What was stored before ``end`` less this is the backlog."""
    below = min(max(acks.mark_delete + 1, first_kept), end)
    acked = acked_within(index, acks, below, end)
    return Amounts(
        below + acked.entries,
        index.messages_before(below) + acked.messages,
        index.bytes_before(below) + acked.bytes,
    )
