"""The index of one topic's entries: position, size and times.

Compact arrays hold it, with no object per entry: 4 bytes of offset, 8 of receive time, 4 of publish
lag and two running totals of 8 bytes each (messages and bytes since the topic's creation). That is
32 bytes an entry, before the arrays' spare room. Size and message count are differences of the
totals, so the messages and bytes of any range, and thus of any backlog, cost one subtraction.

An entry has two times. Neither runs backwards in its topic, so bisection finds both:

* The *receive time*, for ages: the time of the log (see headgate.base.log_time) when the entry was
  staged, but not before the receive time of the entry before it.
* The *publish time*, for seeks: the producer's clock, but not after the receive time and not before
  the publish time of the entry before. The index stores the *publish lag*, the milliseconds from
  publish to receive time. It is at most :data:`PUBLISH_LAG_MS_MAX`, 49.7 days. If the producer
  sends no time, the publish time is the receive time.

The times of the last entry outlive it: all arrays but the offsets begin with an element for the
entry before the first indexed one, and RUN records, footers and checkpoints store that element. So
the last times are known after any start, also if all entries are trimmed. If an entry was staged
and did not become durable, its times are forgotten too, because no client saw them.

A *run* is the range of a topic's entries in one segment. Other packages use methods only, so a
later release can leave the index of sealed segments on disk, in their footers.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple, Protocol

from headgate.base.errors import invariant
from headgate.base.positions import EARLIEST, Position
from headgate.ledger.format.records import ENTRY_HEAD_BYTES, SEGMENT_HEADER_BYTES
from headgate.ledger.index.columns import Columns, TopicTotals

_make_tuple = tuple.__new__

_COMPACT_ENTRIES_MIN = 1024
"""The arrays are compacted when at least this many entries, and half of all, are trimmed."""

PUBLISH_LAG_MS_MAX: Final = 0xFFFFFFFF
"""The largest publish lag: what 4 bytes hold, 49.7 days."""


class NumberedTopic(Protocol):
    """Names a topic of the log by its number, as :class:`TopicLog` does."""

    @property
    def number(self) -> int:
        """The topic's number: never reused."""


class LiveRun(NamedTuple):
    """What a topic retains in one segment."""

    segment: int
    live_bytes: int
    """Bytes of its durable, retained ENTRY records."""


class Released(NamedTuple):
    """What a trim took from the live entries of one segment."""

    segment: int
    live_bytes: int
    """Bytes of ENTRY records that are no longer needed."""
    is_whole: bool
    """Whether the topic retains nothing more in the segment."""


@dataclass(frozen=True, slots=True)
class LedgerInfo:
    """One ledger of a topic, as admin tools show it."""

    ledger_id: int
    first_ordinal: int
    """The ordinal of entry 0 of the ledger."""
    entries: int
    """Entries appended to it, trimmed ones included."""
    size_bytes: int
    """Bytes of its retained entries."""
    created_ms: int
    """When it was opened, in the time of the log."""


class TopicLog:
    """The entries of one topic in the log, created by :meth:`headgate.ledger.CommitLog.open` and
    :meth:`headgate.ledger.CommitLog.enter_topic`.

    ``first <= end <= staged_end``. These three are plain attributes because every message reads
    them; only the log changes them.
    """

    __slots__ = (
        "_base", "_cum_bytes", "_cum_messages", "_ledger_created", "_ledger_first", "_ledger_ids",
        "_offsets", "_publish_lags", "_received", "_run_first", "_run_segment", "damage", "end",
        "first", "ledger_limit", "lost", "mark", "number", "staged_end",
    )  # fmt: skip

    def __init__(self, number: int) -> None:
        self.number = number
        """The topic's number: never reused."""
        self.first = 0
        """The first retained ordinal."""
        self.end = 0
        """One past the last durable entry. Only durable entries are visible."""
        self.staged_end = 0
        """One past the last staged entry: the next entry's ordinal."""
        self.mark = -1
        """The batch that last appended to the topic; for the log only."""
        self.ledger_limit = -1
        """The ordinal at which the log checks whether to open another ledger; for the log only."""
        self.damage = ""
        """What the topic lost, and where; empty if nothing, or if an operator accepted the loss."""
        self.lost: list[tuple[int, int]] = []
        """Ranges of lost entries, ``(first, one past the last)``, ascending and disjoint."""
        self._base = 0
        self._offsets = array("I")
        self._received = array("q", (0,))
        self._publish_lags = array("I", (0,))
        self._cum_messages = array("q", (0,))
        self._cum_bytes = array("q", (0,))
        self._run_first: list[int] = []
        self._run_segment: list[int] = []
        self._ledger_ids: list[int] = []
        self._ledger_first: list[int] = []
        self._ledger_created: list[int] = []

    # Reads ----------------------------------------------------------------------------------

    def message_count(self, ordinal: int) -> int:
        """Messages in an entry: the producer's count; 1 if it is not a batch."""
        totals = self._cum_messages
        at = ordinal - self._base
        return totals[at + 1] - totals[at]

    def size_bytes(self, ordinal: int) -> int:
        """Bytes of an entry's body."""
        totals = self._cum_bytes
        at = ordinal - self._base
        return totals[at + 1] - totals[at]

    def received_ms(self, ordinal: int) -> int:
        """The receive time of an entry."""
        return self._received[ordinal - self._base + 1]

    def published_ms(self, ordinal: int) -> int:
        """The publish time of an entry."""
        at = ordinal - self._base + 1
        return self._received[at] - self._publish_lags[at]

    def messages_before(self, ordinal: int) -> int:
        """Messages since the topic's creation before an ordinal, ``first`` to ``staged_end``.

        An ordinal below the index counts as the first indexed one.
        """
        at = ordinal - self._base
        return self._cum_messages[at if at > 0 else 0]

    def bytes_before(self, ordinal: int) -> int:
        """Bytes of bodies since the topic's creation; as :meth:`messages_before`."""
        at = ordinal - self._base
        return self._cum_bytes[at if at > 0 else 0]

    def ordinal_received_at_or_after(self, log_ms: int) -> int:
        """The first retained entry received at or after a time; ``end`` if there is none.

        A bisection of ``log n`` steps.
        """
        before = self._base - 1
        return bisect_left(self._received, log_ms, self.first - before, self.end - before) + before

    def ordinal_published_at_or_after(self, publish_ms: int) -> int:
        """The first retained entry published at or after a time; ``end`` if there is none."""
        entries = range(self.first, self.end)
        return self.first + bisect_left(entries, publish_ms, key=self.published_ms)

    def position(self, ordinal: int) -> Position:
        """The message id of an entry, or of the position just before or after the entries.

        A topic without a ledger has only the position :data:`EARLIEST`.
        """
        firsts = self._ledger_first
        if not firsts:
            return EARLIEST
        first = firsts[-1]
        if ordinal >= first:
            # Runs for every message: twice as fast as a call of Position.
            return _make_tuple(Position, (self._ledger_ids[-1], ordinal - first))
        at = max(bisect_right(firsts, ordinal) - 1, 0)
        return Position(self._ledger_ids[at], max(ordinal - firsts[at], -1))

    def ordinal_at_or_after(self, ledger_id: int, entry_id: int) -> int:
        """The first ordinal, from ``first`` to ``end``, that is not before a position.

        :data:`EARLIEST` gives ``first``, :data:`LATEST` gives ``end``, and a position in a trimmed
        ledger gives the first entry after it.
        """
        ids = self._ledger_ids
        at = bisect_left(ids, ledger_id)
        if at == len(ids):
            return self.end
        ordinal = self._ledger_first[at]
        if ids[at] == ledger_id and entry_id > 0:
            ordinal += entry_id
            if at + 1 < len(ids):
                ordinal = min(ordinal, self._ledger_first[at + 1])
        return min(max(ordinal, self.first), self.end)

    def ledgers(self) -> list[LedgerInfo]:
        """The ledgers with retained entries and the last ledger, oldest first."""
        found: list[LedgerInfo] = []
        count = len(self._ledger_ids)
        for at in range(count):
            first = self._ledger_first[at]
            last = at + 1 == count
            stop = self.end if last else self._ledger_first[at + 1]
            if stop <= self.first and not last:
                continue  # it is kept only for the id of the last entry
            kept = min(max(first, self.first), stop)
            size = self.bytes_before(stop) - self.bytes_before(kept) if stop > kept else 0
            created = self._ledger_created[at]
            found.append(
                LedgerInfo(self._ledger_ids[at], first, max(stop - first, 0), size, created)
            )
        return found

    @property
    def current_ledger_entries(self) -> int:
        """Entries in the last ledger; 0 without a ledger."""
        return max(self.end - self._ledger_first[-1], 0) if self._ledger_first else 0

    @property
    def current_ledger_bytes(self) -> int:
        """Retained bytes in the last ledger; 0 without a ledger."""
        if not self._ledger_first:
            return 0
        return self.bytes_before(self.end) - self.bytes_before(
            min(max(self._ledger_first[-1], self.first), self.end)
        )

    # Changes by the log ---------------------------------------------------------------------

    def times_of_next(self, log_ms: int, publish_ms: int) -> tuple[int, int]:
        """``(receive time, publish lag)`` in milliseconds of an entry that is staged now.

        ``log_ms`` is the time of the log and ``publish_ms`` the producer's publish time, 0 if it
        sent none. Recovery does not call this: it indexes the times in the records.
        """
        before_ms = self._received[-1]
        received_ms = log_ms if log_ms > before_ms else before_ms
        if not 0 < publish_ms < received_ms:
            return received_ms, 0
        earliest_ms = before_ms - self._publish_lags[-1]
        lag_ms = received_ms - (publish_ms if publish_ms > earliest_ms else earliest_ms)
        return received_ms, lag_ms if lag_ms < PUBLISH_LAG_MS_MAX else PUBLISH_LAG_MS_MAX

    def append(
        self, message_count: int, size: int, received_ms: int, publish_lag_ms: int, offset: int
    ) -> None:
        """Index the next entry, which lies at ``offset`` in the last run's segment.

        ``received_ms`` and ``publish_lag_ms`` are as :meth:`times_of_next` returned them.
        """
        self._offsets.append(offset)
        self._received.append(received_ms)
        self._publish_lags.append(publish_lag_ms)
        messages, sizes = self._cum_messages, self._cum_bytes
        messages.append(messages[-1] + message_count)
        sizes.append(sizes[-1] + size)
        self.staged_end += 1

    @property
    def segment(self) -> int:
        """The segment of the last run; -1 without a run."""
        return self._run_segment[-1] if self._run_segment else -1

    def open_run(self, segment: int) -> bool:
        """Let entries from ``staged_end`` on lie in ``segment``. False if the last run is in it."""
        if self._run_segment and self._run_segment[-1] == segment:
            return False
        self._run_first.append(self.staged_end)
        self._run_segment.append(segment)
        return True

    def drop_empty_run(self) -> None:
        """Forget the last run if it has no entries. For recovery: the tail of a torn batch may be
        a RUN record without the entry that followed it."""
        if self._run_first and self._run_first[-1] >= self.staged_end:
            self._run_first.pop()
            self._run_segment.pop()

    def open_ledger(self, ledger_id: int, first_ordinal: int, created_ms: int) -> None:
        """Let entries from ``first_ordinal`` on belong to a new ledger."""
        while self._ledger_first and self._ledger_first[-1] >= first_ordinal:
            self._pop_ledger()
        self._ledger_ids.append(ledger_id)
        self._ledger_first.append(first_ordinal)
        self._ledger_created.append(created_ms)

    def roll_ledger(self, ledger_id: int, created_ms: int) -> None:
        """Close the last ledger, if it has entries: the next entry belongs to a new one.

        The new ledger is only in memory until it has an entry. If a restart loses it, nothing is
        lost: the next entry opens a ledger, and no id is used twice.
        """
        if self._ledger_first and self.staged_end > self._ledger_first[-1]:
            self.open_ledger(ledger_id, self.staged_end, created_ms)
            self.ledger_limit = self.staged_end

    def last_ledger(self) -> tuple[int, int, int]:
        """``(ledger id, first ordinal, created ms)`` of the last ledger."""
        return self._ledger_ids[-1], self._ledger_first[-1], self._ledger_created[-1]

    def ledger_rows(self) -> list[tuple[int, int, int]]:
        """``(ledger id, first ordinal, created ms)`` of all ledgers, oldest first."""
        return list(zip(self._ledger_ids, self._ledger_first, self._ledger_created, strict=True))

    def staged_ledger_bytes(self) -> int:
        """Indexed bytes in the last ledger, staged entries included."""
        return self._cum_bytes[-1] - self.bytes_before(self._ledger_first[-1])

    def totals(self, ordinal: int) -> TopicTotals:
        """The totals before an ordinal; before the first indexed one if it is below that."""
        at = max(ordinal - self._base, 0)
        return TopicTotals(
            self._cum_messages[at], self._cum_bytes[at], self._received[at], self._publish_lags[at]
        )

    def rewind(self) -> list[int]:
        """Forget entries that are staged and not durable; returns the segments that lost a run."""
        self.staged_end = self.end
        keep = self.end - self._base
        del self._offsets[keep:]
        del self._received[keep + 1 :], self._publish_lags[keep + 1 :]
        del self._cum_messages[keep + 1 :], self._cum_bytes[keep + 1 :]
        lost: list[int] = []
        # A trim up to the end spared the last run for the staged entries, which are gone now.
        is_empty = self.first == self.end
        while self._run_first and (is_empty or self._run_first[-1] >= self.end):
            self._run_first.pop()
            lost.append(self._run_segment.pop())
        end = self.end
        firsts = self._ledger_first
        while firsts and (firsts[-1] > end or (firsts[-1] == end and len(firsts) > 1)):
            self._pop_ledger()
        self.ledger_limit = -1
        self.mark = -1
        return lost

    def trim(self, first: int) -> list[Released]:
        """Drop the entries below ``first``; returns what that took from each segment."""
        before = self.first
        self.first = max(before, min(first, self.end))
        dropped = 0
        released: list[Released] = []
        count = len(self._run_first)
        while dropped < count:
            stop = self._run_first[dropped + 1] if dropped + 1 < count else self.staged_end
            is_whole = stop <= self.first
            low, high = max(self._run_first[dropped], before), min(stop, self.first)
            if low < high or is_whole:
                live_bytes = self.live_bytes(low, high)
                released.append(Released(self._run_segment[dropped], live_bytes, is_whole))
            if not is_whole:
                break
            dropped += 1
        del self._run_first[:dropped], self._run_segment[:dropped]
        gone = 0
        firsts = self._ledger_first
        # The ledger of the last entry stays even if that entry is trimmed: its id needs it.
        stop = min(self.first, self.end - 1)
        while gone + 1 < len(firsts) and firsts[gone + 1] <= stop:
            gone += 1
        del self._ledger_ids[:gone], self._ledger_first[:gone], self._ledger_created[:gone]
        dead = self.first - self._base
        if dead >= len(self._offsets) or dead >= max(_COMPACT_ENTRIES_MIN, len(self._offsets) // 2):
            self._cut_head(dead)
        return released

    def live_bytes(self, first: int, end: int) -> int:
        """Bytes of the ENTRY records of a range of retained entries."""
        if first >= end:
            return 0
        bodies_bytes = self.bytes_before(end) - self.bytes_before(first)
        return bodies_bytes + (end - first) * ENTRY_HEAD_BYTES

    def live_runs(self) -> list[LiveRun]:
        """What the topic retains in each segment, oldest first. A segment that has only staged
        entries of it is listed with 0 bytes."""
        stops = [*self._run_first[1:], self.end]
        return [
            LiveRun(segment, self.live_bytes(max(first, self.first), min(stop, self.end)))
            for first, stop, segment in zip(self._run_first, stops, self._run_segment, strict=False)
        ]

    def live_bytes_in(self, segment: int) -> int | None:
        """Live bytes of the topic's run in a segment, as :meth:`live_runs` has them; None without a
        run in it."""
        try:
            at = self._run_segment.index(segment)
        except ValueError:
            return None
        stop = self._run_first[at + 1] if at + 1 < len(self._run_first) else self.end
        return self.live_bytes(max(self._run_first[at], self.first), min(stop, self.end))

    def run_in(self, segment: int) -> tuple[int, int] | None:
        """``(first, end)`` of the retained and staged entries in a segment; None without any."""
        try:
            at = self._run_segment.index(segment)
        except ValueError:
            return None
        first = max(self._run_first[at], self._base)
        last = at + 1 == len(self._run_first)
        stop = self.staged_end if last else self._run_first[at + 1]
        return (first, stop) if first < stop else None

    def columns(self, first: int, end: int) -> Columns:
        """The index of a range of retained entries."""
        low, high = first - self._base, end - self._base
        return Columns(
            self._offsets[low:high],
            self._received[low : high + 1],
            self._publish_lags[low : high + 1],
            self._cum_messages[low : high + 1],
            self._cum_bytes[low : high + 1],
        )

    def run_of(self, ordinal: int) -> tuple[int, int]:
        """``(segment, end of its run)`` for a retained, durable ordinal."""
        at = bisect_right(self._run_first, ordinal) - 1
        invariant(at >= 0, f"topic {self.number} has no run for ordinal {ordinal}")
        stop = self._run_first[at + 1] if at + 1 < len(self._run_first) else self.end
        return self._run_segment[at], min(stop, self.end)

    def move_runs(
        self, first_segment: int, segment: int, first: int, offsets: array[int]
    ) -> list[LiveRun]:
        """Make one run in ``segment`` of the runs from ``first_segment`` to it. Their entries from
        ``first`` on have these ``offsets`` now; it must not be above the first retained one.

        Returns what the topic retained in each of these segments.
        """
        low = bisect_left(self._run_segment, first_segment)
        high = bisect_right(self._run_segment, segment)
        if low == high:
            return []
        moved = self.live_runs()[low:high]
        start = max(first, self._base)
        stop = first + len(offsets)
        if start < stop:
            self._offsets[start - self._base : stop - self._base] = offsets[start - first :]
        del self._run_first[low + 1 : high]
        self._run_segment[low:high] = [segment]
        return moved

    def offset_end(self, from_ordinal: int, end: int, offset_limit: int) -> int:
        """One past the last entry before ``end`` that starts below an offset of its segment."""
        low, high = from_ordinal - self._base, end - self._base
        return bisect_left(self._offsets, offset_limit, low, high) + self._base

    # Lost entries ---------------------------------------------------------------------------

    def note_lost(self, first: int, stop: int) -> None:
        """Note that these entries are missing or damaged."""
        rows = sorted([*self.lost, (first, stop)])
        self.lost = []
        for low, high in rows:
            if self.lost and low <= self.lost[-1][1]:
                self.lost[-1] = (self.lost[-1][0], max(high, self.lost[-1][1]))
            else:
                self.lost.append((low, high))

    def is_lost(self, ordinal: int) -> bool:
        """Whether an entry is known to be lost."""
        return any(first <= ordinal < stop for first, stop in self.lost)

    def append_lost(self, stop: int, totals: TopicTotals | None) -> None:
        """Index the entries before ``stop`` as lost: a read of one finds another record at its
        offset. ``totals`` are the topic's totals before ``stop``; None if they are unknown."""
        count = stop - self.staged_end
        if not self._run_segment:
            self.restart_at(stop, totals or self.totals(self.staged_end))
            return
        messages, size = count, 0
        received_ms, lag_ms = self._received[-1], self._publish_lags[-1]
        if totals is not None:
            messages = max(totals.messages - self._cum_messages[-1], count)
            size = max(totals.size_bytes - self._cum_bytes[-1], 0)
            received_ms, lag_ms = totals.received_ms, totals.publish_lag_ms
        offset = self._offsets[-1] if self._offsets else SEGMENT_HEADER_BYTES
        for left in range(count, 0, -1):
            # The first lost entry carries the messages and bytes of all, so the totals are right.
            amount = messages - count + 1 if left == count else 1
            self.append(amount, size if left == count else 0, received_ms, lag_ms, offset)
        self.end = self.staged_end

    # Recovery -------------------------------------------------------------------------------

    def restart_at(self, ordinal: int, totals: TopicTotals) -> None:
        """Forget all entries and continue with ``ordinal`` and these totals."""
        self._base = self.end = self.staged_end = ordinal
        del self._offsets[:]
        self._cum_messages = array("q", (totals.messages,))
        self._cum_bytes = array("q", (totals.size_bytes,))
        self._received = array("q", (totals.received_ms,))
        self._publish_lags = array("I", (totals.publish_lag_ms,))
        self._run_first.clear()
        self._run_segment.clear()

    def extend(self, segment: int, columns: Columns) -> None:
        """Index a whole run of a sealed segment at once."""
        self.open_run(segment)
        self._offsets.extend(columns.offsets)
        self._received.extend(islice(columns.received, 1, None))
        self._publish_lags.extend(islice(columns.publish_lags, 1, None))
        _extend_sums(self._cum_messages, columns.messages)
        _extend_sums(self._cum_bytes, columns.sizes)
        self.staged_end = self.end = self._base + len(self._offsets)

    def bound_times(self, before_segment: int | None, received_ms: int) -> bool:
        """Bound the times of entries in segments before ``before_segment`` (None: all) by
        ``received_ms``. Returns whether a receive time was later."""
        stop = self.staged_end
        if before_segment is not None:
            runs = zip(self._run_first, self._run_segment, strict=True)
            stop = next((first for first, segment in runs if segment >= before_segment), stop)
        received, lags = self._received, self._publish_lags
        # The entry before the first, too: its time bounds those after it.
        end = max(stop - self._base, 0) + 1
        at = bisect_right(received, received_ms, 0, end)
        late = range(at, end)
        for at in late:
            lags[at] = max(received_ms - received[at] + lags[at], 0)
            received[at] = received_ms
        created = self._ledger_created
        for at, first in enumerate(self._ledger_first):
            if first < max(stop, 1):
                created[at] = min(created[at], received_ms)
        return bool(late)

    @property
    def newest_received_ms(self) -> int:
        """The receive time of the last entry, trimmed or not; 0 if there never was one."""
        return self._received[-1]

    @property
    def base(self) -> int:
        """The first indexed ordinal; at most ``first``."""
        return self._base

    def _pop_ledger(self) -> None:
        self._ledger_ids.pop()
        self._ledger_first.pop()
        self._ledger_created.pop()

    def _cut_head(self, count: int) -> None:
        del self._offsets[:count], self._received[:count], self._publish_lags[:count]
        del self._cum_messages[:count], self._cum_bytes[:count]
        self._base += count


def _extend_sums(sums: array[int], more: array[int]) -> None:
    """Append to running sums. They are shifted if entries of unknown size are lost between."""
    step = sums[-1] - more[0]
    sums.extend(islice(more, 1, None) if not step else (value + step for value in more[1:]))
