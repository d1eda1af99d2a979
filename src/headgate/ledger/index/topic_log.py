"""The entries of one topic: their index, their runs and their ledgers.

A *run* is the range of a topic's entries in one segment, a *ledger* a range of message ids. The
index of the entries themselves is an :class:`headgate.ledger.index.entry_index.EntryIndex`.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from operator import itemgetter
from typing import NamedTuple, Protocol

from headgate.base.errors import invariant
from headgate.base.positions import EARLIEST, Position
from headgate.base.sequence_table import SequenceTable
from headgate.base.stored_total import StoredTotal
from headgate.ledger.format.records import ENTRY_HEAD_BYTES, SEGMENT_HEADER_BYTES
from headgate.ledger.index.block_cache import BlockCache
from headgate.ledger.index.columns import Columns, TopicTotals
from headgate.ledger.index.entry_index import EntryIndex
from headgate.ledger.index.stored_run import StoredRun

_make_tuple = tuple.__new__


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


class TopicLog(EntryIndex):
    """The entries of one topic in the log, created by :meth:`headgate.ledger.CommitLog.open` and
    :meth:`headgate.ledger.CommitLog.enter_topic`.

    ``first <= end <= staged_end``. These three are plain attributes because every message reads
    them; only the log changes them.
    """

    __slots__ = (
        "_ledger_created", "_ledger_first", "_ledger_ids", "_ledger_totals", "_run_first",
        "_run_segment", "damage", "ledger_limit", "lost", "mark", "sequences", "stored_total",
        "trim_end",
    )  # fmt: skip

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.mark = -1
        """The batch that last appended to the topic; for the log only."""
        self.trim_end = 0
        """One past the last entry that a staged trim removes, also while it is not durable."""
        self.ledger_limit = -1
        """The ordinal at which the log checks whether to open another ledger; for the log only."""
        self.damage = ""
        """What the topic lost, and where; empty if nothing, or if an operator accepted the loss."""
        self.lost: list[tuple[int, int]] = []
        """Ranges of lost entries, ``(first, one past the last)``, ascending and disjoint. An empty
        range: what belonged before that entry, other than an entry, is lost."""
        self.sequences: SequenceTable | None = None
        """The producers that deduplication knows; None while the topic has no deduplication."""
        self.stored_total = StoredTotal(ENTRY_HEAD_BYTES)
        """What the topic, or all of its tenant, stores."""
        self._run_first = array("q")
        self._run_segment = array("q")
        self._ledger_ids: list[int] = []
        self._ledger_first: list[int] = []
        self._ledger_created: list[int] = []
        self._ledger_totals: list[int] = []
        """Bytes of the topic before each ledger; -1 if that was not looked up yet."""

    # Positions and ledgers ------------------------------------------------------------------

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
            before = self._bytes_before_ledger(at) if kept == first else self.bytes_before(kept)
            after = self.bytes_before(stop) if last else self._bytes_before_ledger(at + 1)
            size = after - before if stop > kept else 0
            created = self._ledger_created[at]
            found.append(
                LedgerInfo(self._ledger_ids[at], first, max(stop - first, 0), size, created)
            )
        return found

    def ledger_starts(self) -> list[int]:
        """The first ordinals of the ledgers that :meth:`ledgers` lists."""
        firsts = self._ledger_first
        at = 0
        while at + 1 < len(firsts) and firsts[at + 1] <= self.first:
            at += 1
        return firsts[at:]

    @property
    def current_ledger_entries(self) -> int:
        """Entries in the last ledger; 0 without a ledger."""
        return max(self.end - self._ledger_first[-1], 0) if self._ledger_first else 0

    @property
    def current_ledger_bytes(self) -> int:
        """Retained bytes in the last ledger; 0 without a ledger."""
        if not self._ledger_first:
            return 0
        first = self._ledger_first[-1]
        if first < self.first:
            before = self.bytes_before(min(self.first, self.end))
        else:
            before = self._bytes_before_ledger(len(self._ledger_first) - 1)
        return self.bytes_before(self.end) - before

    # Changes by the log ---------------------------------------------------------------------

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
        self.stored_total.runs += 1
        return True

    def drop_empty_run(self) -> None:
        """Forget the last run if it has no entries. For recovery: the tail of a torn batch may be
        a RUN record without the entry that followed it."""
        if self._run_first and self._run_first[-1] >= self.staged_end:
            self._run_first.pop()
            self._run_segment.pop()
            self.stored_total.runs -= 1

    def open_ledger(self, ledger_id: int, first_ordinal: int, created_ms: int) -> None:
        """Let entries from ``first_ordinal`` on belong to a new ledger."""
        while self._ledger_first and self._ledger_first[-1] >= first_ordinal:
            self._pop_ledger()
        self._ledger_ids.append(ledger_id)
        self._ledger_first.append(first_ordinal)
        self._ledger_created.append(created_ms)
        is_next = first_ordinal == self.staged_end
        self._ledger_totals.append(self._cum_bytes[-1] if is_next else -1)

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
        return self._cum_bytes[-1] - self._bytes_before_ledger(len(self._ledger_first) - 1)

    def _bytes_before_ledger(self, at: int) -> int:
        """What :meth:`bytes_before` gives for the first entry of a ledger, which may lie in a block
        that is not in memory, without a second look-up."""
        first, base = self._ledger_first[at], self.base
        if first <= base or first > self.staged_end:
            return self.bytes_before(max(first, base) if first <= base else self.staged_end)
        if self._ledger_totals[at] < 0:
            self._ledger_totals[at] = self.bytes_before(first)
        return self._ledger_totals[at]

    def learn_last_ledger(self) -> None:
        """Look up what the bytes of the last ledger are counted from, once at the start: the next
        entry must not wait for that."""
        if self._ledger_first:
            self._bytes_before_ledger(len(self._ledger_first) - 1)

    def rewind(self) -> list[int]:
        """Forget entries that are staged and not durable; returns the segments that lost a run."""
        self.staged_end = self.end
        self._cut_tail(self.end)
        lost: list[int] = []
        # A trim up to the end spared the last run for the staged entries, which are gone now.
        is_empty = self.first == self.end
        while self._run_first and (is_empty or self._run_first[-1] >= self.end):
            self._run_first.pop()
            lost.append(self._run_segment.pop())
        self.stored_total.runs -= len(lost)
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
        self.stored_total.runs -= dropped
        gone = 0
        firsts = self._ledger_first
        # The ledger of the last entry stays even if that entry is trimmed: its id needs it.
        stop = min(self.first, self.end - 1)
        while gone + 1 < len(firsts) and firsts[gone + 1] <= stop:
            gone += 1
        del self._ledger_ids[:gone], self._ledger_first[:gone], self._ledger_created[:gone]
        del self._ledger_totals[:gone]
        self._cut_trimmed()
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
        first = max(self._run_first[at], self.base)
        last = at + 1 == len(self._run_first)
        stop = self.staged_end if last else self._run_first[at + 1]
        return (first, stop) if first < stop else None

    def run_of(self, ordinal: int) -> tuple[int, int]:
        """``(segment, end of its run)`` for a retained, durable ordinal."""
        at = bisect_right(self._run_first, ordinal) - 1
        invariant(at >= 0, f"topic {self.number} has no run for ordinal {ordinal}")
        stop = self._run_first[at + 1] if at + 1 < len(self._run_first) else self.end
        return self._run_segment[at], min(stop, self.end)

    def move_runs(
        self,
        first_segment: int,
        segment: int,
        first: int,
        offsets: array[int],
        stored: StoredRun | None,
        cache: BlockCache,
    ) -> list[LiveRun]:
        """Make one run in ``segment`` of the runs from ``first_segment`` to it. Their entries from
        ``first`` on have these ``offsets`` now, and their index is ``stored``; ``first`` must not
        be above the first retained one.

        Returns what the topic retained in each of these segments.
        """
        low = bisect_left(self._run_segment, first_segment)
        high = bisect_right(self._run_segment, segment)
        if low == high:
            return []
        moved = self.live_runs()[low:high]
        self._move_entries(first, offsets, stored, cache)
        self.stored_total.runs -= high - low - 1
        del self._run_first[low + 1 : high]
        self._run_segment[low:high] = array("q", (segment,))
        return moved

    # Lost entries ---------------------------------------------------------------------------

    def note_lost(self, first: int, stop: int) -> None:
        """Note that these entries are missing or damaged; if there are none, that what belonged
        before ``first`` is."""
        rows = sorted([*self.lost, (first, stop)])
        self.lost = []
        for low, high in rows:
            if self.lost and low <= self.lost[-1][1]:
                self.lost[-1] = (self.lost[-1][0], max(high, self.lost[-1][1]))
            else:
                self.lost.append((low, high))

    def is_lost(self, ordinal: int) -> bool:
        """Whether an entry is known to be lost."""
        lost = self.lost
        if not lost:
            return False
        at = bisect_right(lost, ordinal, key=itemgetter(0)) - 1
        return at >= 0 and ordinal < lost[at][1]

    def lost_ranges(self) -> list[tuple[int, int]]:
        """The ranges of retained entries that are known to be lost."""
        ranges = ((max(first, self.first), stop) for first, stop in self.lost)
        return [(first, stop) for first, stop in ranges if first < stop]

    def is_known_lost(self, ordinal: int) -> bool:
        """Whether it is known that what belonged before an entry is lost."""
        return any(first <= ordinal <= stop for first, stop in self.lost)

    def last_kept(self) -> int:
        """The last durable entry that is not known to be lost; below ``first`` without one."""
        last = self.end - 1
        for first, stop in reversed(self.lost):
            if stop <= last:
                break
            last = min(last, first - 1)
        return last

    def lost_from(self, ordinal: int, stop: int) -> int:
        """The first entry behind ``ordinal`` that is lost, or is not if ``ordinal`` is; at most
        ``stop``. The index of a lost entry may lead to another entry's record."""
        at = bisect_right(self.lost, ordinal, key=itemgetter(1))
        if at == len(self.lost):
            return stop
        first, past = self.lost[at]
        return min(stop, first if ordinal < first else past)

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
        self._forget_entries(ordinal, totals)
        self.end = self.staged_end = ordinal
        self._ledger_totals = [-1] * len(self._ledger_totals)
        self.stored_total.runs -= len(self._run_first)
        del self._run_first[:], self._run_segment[:]

    def extend(self, segment: int, columns: Columns) -> None:
        """Index a whole run of a sealed segment at once, in memory."""
        self.open_run(segment)
        self._extend_columns(columns)
        self.staged_end = self.end = self.memory_first + len(self._offsets)

    def extend_stored(self, run: StoredRun, first: int, stop: int, cache: BlockCache) -> None:
        """Index the entries ``first`` to ``stop`` of a sealed segment, which follow the others,
        without their blocks."""
        self.open_run(run.segment)
        self._add_stored(run, first, stop, cache)
        self.staged_end = self.end = self.memory_first

    def bound_times(self, before_segment: int | None, received_ms: int) -> bool:
        """Bound the times of entries in segments before ``before_segment`` (None: all) by
        ``received_ms``. Returns whether a receive time was later."""
        stop = self.staged_end
        if before_segment is not None:
            runs = zip(self._run_first, self._run_segment, strict=True)
            stop = next((first for first, segment in runs if segment >= before_segment), stop)
        is_late = self._bound_entries(stop, received_ms)
        created = self._ledger_created
        for at, first in enumerate(self._ledger_first):
            if first < max(stop, 1):
                created[at] = min(created[at], received_ms)
        return is_late

    def _pop_ledger(self) -> None:
        self._ledger_ids.pop()
        self._ledger_first.pop()
        self._ledger_created.pop()
        self._ledger_totals.pop()
