"""A cursor: what a subscription has acknowledged of its topic, and the backlog that is left.

The backlog is exact and costs nothing at publish: it is what the topic stored minus what the cursor
is done with, both cumulative.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from headgate.base import block_sums
from headgate.base.ack_set import BLOCK_ORDINALS, AckSet
from headgate.engine.ports import EntryLog
from headgate.flow.quota import backlog


class CursorTopic(Protocol):
    """The topic, as far as a cursor needs it."""

    @property
    def log(self) -> EntryLog:
        """The stored entries."""

    def is_looked_up(self, action: Callable[[], object], again: Callable[[], None], /) -> bool:
        """Whether a look-up of entries succeeded; else ``again`` follows when the index is read."""


class Cursor:
    """The acknowledgements of one subscription.

    ``done_*`` count entries, messages and bytes below the topic's end that are acknowledged or
    skipped, since the topic was created; everything at or below ``acks.mark_delete`` counts. For a
    partly acknowledged entry the acknowledged messages count; its bytes and the entry itself count
    when all its messages are acknowledged (:mod:`headgate.flow.quota.backlog`).
    """

    __slots__ = (
        "__weakref__",
        "_oldest",
        "acks",
        "done_bytes",
        "done_entries",
        "done_messages",
        "topic",
    )

    def __init__(self, topic: CursorTopic, acks: AckSet) -> None:
        self.topic = topic
        self.acks = acks
        self.done_entries = self.done_messages = self.done_bytes = 0
        self._oldest = -1, 0
        """An entry whose index may be on the disk, and its receive time."""
        counted, acks.counted = acks.counted, None
        if counted is not None and self._has_all and counted[0] == self._counted_for():
            self.done_entries, self.done_messages, self.done_bytes = counted[1]
        else:
            self.count_done()

    @property
    def backlog_entries(self) -> int:
        """Entries stored and not yet acknowledged as a whole, delivered ones included."""
        return self.topic.log.end - self.done_entries

    @property
    def backlog_messages(self) -> int:
        """Messages stored and not yet acknowledged, delivered ones included."""
        log = self.topic.log
        return log.messages_before(log.end) - self.done_messages

    @property
    def backlog_bytes(self) -> int:
        """Bytes of the entries stored and not yet acknowledged as a whole."""
        log = self.topic.log
        return log.bytes_before(log.end) - self.done_bytes

    def oldest_unacked_ms(self) -> int | None:
        """When the broker received the oldest unacknowledged message; None without backlog.

        If the index of that message is on the disk, this has it read, and until then is the time
        of a message shortly behind it. The one before may be much older, or be none at all.
        """
        log, ordinal = self.topic.log, self._first_unacked()
        if ordinal >= log.memory_first:
            return log.received_ms(ordinal) if ordinal < log.end else None
        if not self.is_oldest_known(_await_next_call):
            return log.received_latest_ms(ordinal)
        return self._oldest[1]

    def is_oldest_known(self, again: Callable[[], None]) -> bool:
        """Whether :meth:`oldest_unacked_ms` is exact. If not, the index of that message is read,
        and ``again`` follows when it is known."""
        ordinal = self._first_unacked()
        if ordinal >= self.topic.log.memory_first or self._knows_received(ordinal):
            return True
        return self.topic.is_looked_up(self._look_up_oldest, again)

    def _look_up_oldest(self) -> None:
        log, ordinal = self.topic.log, self._first_unacked()
        if ordinal < log.memory_first:
            self._oldest = ordinal, log.received_ms(ordinal)

    def remember_oldest(self) -> None:
        """Remember the receive time of the oldest unacknowledged message while its index is in
        memory."""
        ordinal = self._first_unacked()
        if ordinal < self.topic.log.memory_first:
            self._knows_received(ordinal)

    def _first_unacked(self) -> int:
        log = self.topic.log
        return self.acks.next_unacked(max(self.acks.mark_delete + 1, log.first), log.end)

    def _knows_received(self, ordinal: int) -> bool:
        """Whether ``_oldest`` is that of an entry whose index may be on the disk."""
        if self._oldest[0] == ordinal:
            return True
        totals, is_exact = self.topic.log.totals_near(ordinal + 1)
        if is_exact:
            self._oldest = ordinal, totals.received_ms
        return is_exact

    def entries_passed(self, last: int) -> list[int]:
        """The entries whose index a move of the cursor to behind ``last`` looks up, as far as that
        may be on the disk: it must be in memory before the move.

        Of the runs of individually acknowledged entries these are the ones that
        :meth:`finish_through` counts: those that it passes or, if fewer, those that remain, without
        those in blocks whose sums are known then (:mod:`headgate.base.block_sums`).
        """
        log, acks = self.topic.log, self.acks
        if log.first >= log.memory_first:
            return []
        stands_at = acks.next_unacked(last + 1, log.end)
        found = [acks.mark_delete + 1, last, last + 1, stands_at]
        if self._counts_remaining(last):
            # The sums of the block in which the cursor stands then are dropped by the move.
            first = max(stands_at, log.first)
            own_stop = min((first // BLOCK_ORDINALS + 1) * BLOCK_ORDINALS, log.memory_first)
            found += [end for run in acks.acked_ranges(own_stop, first) for end in run]
            found += self._runs(own_stop, log.memory_first)
        else:
            found += self._runs(0, min(last + 1, log.memory_first))
        return [ordinal for ordinal in found if log.first <= ordinal < log.memory_first]

    def entries_counted(self) -> list[int]:
        """The entries whose index the cursor of the next load looks up, as far as that may be on
        the disk: with what :meth:`keep_counts` leaves to it, one."""
        log, acks = self.topic.log, self.acks
        found = [acks.mark_delete + 1]
        if not self._has_all:
            found += self._runs(0, log.memory_first)
        return [ordinal for ordinal in found if log.first <= ordinal < log.memory_first]

    def _runs(self, first: int, stop: int) -> list[int]:
        """The ends of the runs of individually acknowledged entries within a range, but in blocks
        whose sums are known."""
        acks, found = self.acks, list[int]()
        for piece in block_sums.pieces_of(acks, max(first, acks.mark_delete + 1), stop):
            if piece.sums is None:
                found += [end for run in acks.acked_ranges(piece.stop, piece.first) for end in run]
        return found

    def _counts_remaining(self, last: int) -> bool:
        """Whether a move to behind ``last`` counts the runs that remain, and not those that it
        passes: they are fewer, or the index has nothing below its first entry."""
        acks = self.acks
        if acks.mark_delete + 1 < self.topic.log.first:
            return True
        return 2 * acks.holes_below(last + 1) > acks.holes_count

    def keep_counts(self) -> None:
        """The topic is being unloaded: leave what is counted to the cursor of the next load, which
        would go through all runs of acknowledged entries. Nobody acknowledges meanwhile."""
        if self._has_all:
            counts = self.done_entries, self.done_messages, self.done_bytes
            self.acks.counted = self._counted_for(), counts

    @property
    def _has_all(self) -> bool:
        """Whether nothing behind the mark-delete position has been trimmed, so that the counts
        follow from the acknowledgements alone."""
        return self.acks.mark_delete + 1 >= self.topic.log.first

    def _counted_for(self) -> tuple[int, ...]:
        """What the counts depend on: with other numbers they are void."""
        acks, partials = self.acks, self.acks.partials
        messages = 0 if partials is None else partials.messages
        return acks.mark_delete, acks.holes_count, messages

    def count_done(self) -> None:
        """Count ``done_*`` again from the acknowledgements, after recovery and resets."""
        log = self.topic.log
        self.done_entries, self.done_messages, self.done_bytes = backlog.done_before(
            log, self.acks, log.first, log.end
        )

    def acked_within(self, first: int, stop: int) -> backlog.Amounts:
        """What is acknowledged individually of the entries from ``first`` to before ``stop``: whole
        entries, and single messages of others."""
        return backlog.acked_within(self.topic.log, self.acks, first, stop)

    def count_entry(self, ordinal: int, messages: int, left: int) -> None:
        """Count an entry of so many messages that was acknowledged just now, when ``left`` of them
        were not."""
        size_bytes = self.topic.log.size_bytes(ordinal)
        self.done_entries += 1
        self.done_messages += left
        self.done_bytes += size_bytes
        if ordinal > self.acks.mark_delete:
            block_sums.add_acked(self.acks, ordinal, messages, size_bytes)

    def finish_through(self, last: int) -> int:
        """Mark everything up to and including the stored entry ``last``, which is not done yet, as
        done; returns how many messages that are. What is acknowledged individually is subtracted
        if it is passed or, if that is less, added if it remains; the cost is that of
        :func:`headgate.flow.quota.backlog.acked_within`."""
        log, acks = self.topic.log, self.acks
        before = self.done_messages
        first, stop = acks.mark_delete + 1, last + 1
        if self._counts_remaining(last):
            acks.ack_through(last)
            self.count_done()
            return self.done_messages - before
        entries, messages, size_bytes = backlog.newly_done(log, acks, first, stop)
        self.done_entries += entries
        self.done_messages += messages
        self.done_bytes += size_bytes
        acks.ack_through(last)
        return self.done_messages - before


def _await_next_call() -> None:
    """The index of a message was read: the next call finds it."""
