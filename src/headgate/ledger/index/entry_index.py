"""The index of a topic's entries: sizes, message counts, times and offsets.

Compact arrays hold its newest part, with no object per entry: 4 bytes of offset, 8 of receive time,
4 of publish lag and two running totals of 8 bytes each (messages and bytes since the topic's
creation). That is 32 bytes an entry, before the arrays' spare room. Size and message count are
differences of the totals, so the messages and bytes of any range, and thus of any backlog, cost one
subtraction.

The index of sealed segments stays on the disk, in their footers;
:class:`headgate.ledger.index.sparse_index.SparseIndex` finds it there. A look-up below the arrays
may read a block of 4 KB at once.

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
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import islice
from typing import Final

from headgate.ledger.index.block_cache import Block, BlockCache, BlockKey, BlockPart
from headgate.ledger.index.columns import (
    Columns,
    RunningTotals,
    TopicTotals,
    cut_columns,
    extend_columns,
)
from headgate.ledger.index.sparse_index import SparseIndex
from headgate.ledger.index.stored_run import StoredRun

PUBLISH_LAG_MS_MAX: Final = 0xFFFFFFFF
"""The largest publish lag: what 4 bytes hold, 49.7 days."""


_COMPACT_ENTRIES_MIN = 1024
"""The arrays are compacted when at least this many entries, and half of all, are trimmed."""


class EntryIndex:
    """The index of one topic's entries; :class:`headgate.ledger.index.topic_log.TopicLog` is one.

    ``first <= end <= staged_end``. These three are plain attributes because every message reads
    them; only the log changes them.
    """

    __slots__ = (
        "_cum_bytes", "_cum_messages", "_offsets", "_publish_lags", "_received", "_sparse",
        "end", "first", "memory_first", "number", "staged_end",
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
        self._sparse: SparseIndex | None = None
        """The index of the entries below ``memory_first``; None without such entries."""
        self.memory_first = 0
        """The first entry whose index is in the arrays."""
        self._offsets = array("I")
        self._received = array("q", (0,))
        self._publish_lags = array("I", (0,))
        self._cum_messages = array("q", (0,))
        self._cum_bytes = array("q", (0,))

    # Reads ----------------------------------------------------------------------------------

    def message_count(self, ordinal: int) -> int:
        """Messages in an entry: the producer's count; 1 if it is not a batch."""
        at = ordinal - self.memory_first
        if at < 0 and self._sparse is not None:
            return self._sparse.message_count(ordinal)
        totals = self._cum_messages
        return totals[at + 1] - totals[at]

    def size_bytes(self, ordinal: int) -> int:
        """Bytes of an entry's body."""
        at = ordinal - self.memory_first
        if at < 0 and self._sparse is not None:
            return self._sparse.size_bytes(ordinal)
        totals = self._cum_bytes
        return totals[at + 1] - totals[at]

    def received_ms(self, ordinal: int) -> int:
        """The receive time of an entry."""
        at = ordinal - self.memory_first + 1
        if at < 0 and self._sparse is not None:
            return self._sparse.totals(ordinal + 1).received_ms
        return self._received[at]

    def published_ms(self, ordinal: int) -> int:
        """The publish time of an entry."""
        at = ordinal - self.memory_first + 1
        if at < 0 and self._sparse is not None:
            totals = self._sparse.totals(ordinal + 1)
            return totals.received_ms - totals.publish_lag_ms
        return self._received[at] - self._publish_lags[at]

    def messages_before(self, ordinal: int) -> int:
        """Messages since the topic's creation before an ordinal, ``first`` to ``staged_end``.

        An ordinal below the index counts as the first indexed one.
        """
        at = ordinal - self.memory_first
        if at >= 0:
            return self._cum_messages[at]
        return self.totals(ordinal).messages

    def bytes_before(self, ordinal: int) -> int:
        """Bytes of bodies since the topic's creation; as :meth:`messages_before`."""
        at = ordinal - self.memory_first
        if at >= 0:
            return self._cum_bytes[at]
        return self.totals(ordinal).size_bytes

    def running_totals(self, first: int, stop: int) -> RunningTotals | None:
        """The running totals of the entries from ``first`` to ``stop``, or to where they continue
        elsewhere. None if the index of ``first`` is on the disk."""
        if self._sparse is not None and first < self.memory_first:
            return self._sparse.running_totals(first, stop)
        return self._cum_messages, self._cum_bytes, self.memory_first, stop

    def ordinal_with_bytes_before(self, size_bytes: int, first: int, stop: int) -> int:
        """The first ordinal from ``first`` to ``stop`` before which the topic has at least
        ``size_bytes``; ``stop`` if there is none. A bisection."""
        if self._sparse is not None and self._cum_bytes[0] >= size_bytes:
            return min(max(self._sparse.first_with_bytes(size_bytes), first), stop)
        low = max(first - self.memory_first, 0)
        high = max(stop - self.memory_first, low)
        return min(bisect_left(self._cum_bytes, size_bytes, low, high) + self.memory_first, stop)

    def ordinal_received_at_or_after(self, log_ms: int) -> int:
        """The first retained entry received at or after a time; ``end`` if there is none.

        A bisection of ``log n`` steps.
        """
        if self._sparse is not None and self._received[0] >= log_ms:
            return max(self._sparse.first_with(log_ms, published=False), self.first)
        before = self.memory_first - 1
        low = max(self.first - before, 1)
        return bisect_left(self._received, log_ms, low, self.end - before) + before

    def ordinal_published_at_or_after(self, publish_ms: int) -> int:
        """The first retained entry published at or after a time; ``end`` if there is none."""
        if self._sparse is not None and self._received[0] - self._publish_lags[0] >= publish_ms:
            return max(self._sparse.first_with(publish_ms, published=True), self.first)
        first = max(self.first, self.memory_first)
        return first + bisect_left(range(first, self.end), publish_ms, key=self.published_ms)

    def totals(self, ordinal: int) -> TopicTotals:
        """The totals before an ordinal; before the first indexed one if it is below that."""
        if self._sparse is not None and ordinal < self.memory_first:
            return self._sparse.totals(ordinal)
        at = max(ordinal - self.memory_first, 0)
        return TopicTotals(
            self._cum_messages[at], self._cum_bytes[at], self._received[at], self._publish_lags[at]
        )

    def totals_near(self, ordinal: int) -> tuple[TopicTotals, bool]:
        """The totals before an ordinal, and whether they are exact. It never reads: if the index
        is on the disk, they are those before one of the :data:`BLOCK_ENTRIES` entries before."""
        if self._sparse is not None and ordinal < self.memory_first:
            return self._sparse.totals_near(ordinal)
        return self.totals(ordinal), True

    def received_latest_ms(self, ordinal: int) -> int:
        """The latest possible receive time of a retained entry: exact in memory, else that of one
        of the :data:`BLOCK_ENTRIES` entries behind it. It never reads."""
        if self._sparse is not None and ordinal < self.memory_first:
            return self._sparse.received_latest_ms(ordinal)
        return self.received_ms(ordinal)

    def columns(self, first: int, end: int) -> Columns:
        """The index of a range of retained entries."""
        low, high = first - self.memory_first, end - self.memory_first
        if low < 0 and self._sparse is not None:
            found = self._sparse.columns(first, min(end, self.memory_first))
            if high > 0:
                extend_columns(found, self.columns(self.memory_first, end))
            return found
        return cut_columns(self._arrays(), low, high)

    def _arrays(self) -> Columns:
        return Columns(
            self._offsets,
            self._received,
            self._publish_lags,
            self._cum_messages,
            self._cum_bytes,
        )

    def offset_end(self, from_ordinal: int, end: int, offset_limit: int) -> int:
        """One past the last entry before ``end`` that starts below an offset of its segment."""
        low, high = from_ordinal - self.memory_first, end - self.memory_first
        if low < 0:
            offsets = self.columns(from_ordinal, end).offsets
            return bisect_left(offsets, offset_limit) + from_ordinal
        return bisect_left(self._offsets, offset_limit, low, high) + self.memory_first

    @property
    def newest_received_ms(self) -> int:
        """The receive time of the last entry, trimmed or not; 0 if there never was one."""
        return self._received[-1]

    @property
    def base(self) -> int:
        """The first indexed ordinal; at most ``first``."""
        return self.memory_first if self._sparse is None else self._sparse.first

    # Appending ------------------------------------------------------------------------------

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

    def _extend_columns(self, columns: Columns) -> None:
        self._offsets.extend(columns.offsets)
        self._received.extend(islice(columns.received, 1, None))
        self._publish_lags.extend(islice(columns.publish_lags, 1, None))
        _extend_sums(self._cum_messages, columns.messages)
        _extend_sums(self._cum_bytes, columns.sizes)

    # Stored parts ---------------------------------------------------------------------------

    def spill(self, run: StoredRun, cache: BlockCache) -> bool:
        """Leave the entries of a sealed segment, up to the end of this run, to the blocks of its
        footer. False if they are not in memory, or not as stored."""
        self._cut_head(max(min(self.first, self.end) - self.memory_first, 0))
        first = max(run.first, self.memory_first)
        if not first < run.stop <= self.end:
            return False
        at, after = first - self.memory_first, self.totals(run.stop)
        offset, before = self._offsets[at], self.totals(first)
        if not self._is_as_stored(run, first, after):
            return False
        self._fold(first, cache).add_sealed(run, first, offset, before, after)
        self._cut_head(run.stop - self.memory_first)
        return True

    def _is_as_stored(self, run: StoredRun, first: int, after: TopicTotals) -> bool:
        """Whether the rows of a run, which is in memory from ``first`` on, are what memory has."""
        sparse, own = run.sparse, self._offsets
        messages = after.messages - run.after.messages
        size_bytes = after.size_bytes - run.after.size_bytes
        for block in range(run.blocks):
            ordinal, row = run.first_of(block), run.row + block
            if ordinal >= first and (
                own[ordinal - self.memory_first] != sparse.offsets[row]
                or self.totals(ordinal)[:2]
                != (sparse.messages[row] + messages, sparse.sizes[row] + size_bytes)
            ):
                return False
        return after[2:] == run.after[2:]

    def _move_entries(
        self, first: int, offsets: array[int], stored: StoredRun | None, cache: BlockCache
    ) -> None:
        """Give the entries from ``first`` on new offsets, in the file of ``stored``."""
        stop = first + len(offsets)
        if self._sparse is not None and stored is not None and first < self.memory_first:
            self._sparse.replace(stored, offsets, self.totals(stop))
        start = max(first, self.memory_first)
        if start < stop:
            low, high = start - self.memory_first, stop - self.memory_first
            self._offsets[low:high] = offsets[start - first :]
            if stored is not None:
                self.spill(stored, cache)

    def parts(self, first: int, end: int) -> list[Columns | BlockPart]:
        """The index of a range of retained entries without the blocks that are not in memory; see
        :meth:`headgate.ledger.index.block_cache.BlockCache.resolve`."""
        found: list[Columns | BlockPart] = []
        if self._sparse is not None and first < self.memory_first:
            found += self._sparse.parts(first, min(end, self.memory_first))
        if end > self.memory_first:
            found.append(self.columns(max(first, self.memory_first), end))
        return found

    def missing_blocks(self, first: int, end: int) -> list[BlockKey]:
        """The blocks of a range of entries that are not in memory."""
        if self._sparse is None or first >= self.memory_first:
            return []
        return self._sparse.missing(max(first, self.first), min(end, self.end))

    def indexed_stop(self, first: int, stop: int) -> int:
        """Up to where the index of entries from ``first`` on is in memory, at most ``stop``."""
        if self._sparse is None or first >= self.memory_first:
            return stop
        return self._sparse.indexed_stop(first, stop)

    def is_indexed(self, ordinal: int) -> bool:
        """Whether the index of a retained entry is in memory."""
        sparse = self._sparse
        return ordinal >= self.memory_first or sparse is None or sparse.is_indexed(ordinal)

    def index_of(self, ordinals: Sequence[int]) -> list[Block]:
        """The blocks with the retained ones of these entries, as far as they are stored. They stay
        in memory as long as the caller holds them.

        Raises :class:`BlockMissingError` with all blocks that are not in memory.
        """
        sparse = self._sparse
        if sparse is None:
            return []
        first, stop = self.first, self.memory_first
        return sparse.blocks_of(o for o in ordinals if first <= o < stop)

    @property
    def stored(self) -> SparseIndex | None:
        """The index of the entries below :attr:`memory_first`; None without such entries."""
        return self._sparse

    def _add_stored(self, run: StoredRun, first: int, stop: int, cache: BlockCache) -> None:
        before = self.totals(self.staged_end)
        sparse = self._fold(self.staged_end, cache)
        sparse.add_stored(run, first, stop, before)
        self._begin_arrays(sparse.stop, sparse.after)

    def _fold(self, stop: int, cache: BlockCache) -> SparseIndex:
        """Take the entries before ``stop`` from the arrays and keep their columns as one row."""
        sparse = self._sparse
        if sparse is None:
            sparse = self._sparse = SparseIndex(self.number, cache)
        if stop > self.memory_first:
            sparse.add_columns(self.memory_first, self.columns(self.memory_first, stop))
            self._cut_head(stop - self.memory_first)
        return sparse

    # Shrinking ------------------------------------------------------------------------------

    def _cut_trimmed(self) -> None:
        """Forget entries below :attr:`first`, in the arrays only if they are many."""
        sparse = self._sparse
        if sparse is not None and self.first > sparse.first:
            sparse.cut_head(min(self.first, sparse.stop))
            if not sparse.rows:
                self._sparse = None
        dead = self.first - self.memory_first
        if dead > 0 and dead >= min(
            len(self._offsets), max(_COMPACT_ENTRIES_MIN, len(self._offsets) // 2)
        ):
            self._cut_head(dead)

    def _cut_head(self, count: int) -> None:
        del self._offsets[:count], self._received[:count], self._publish_lags[:count]
        del self._cum_messages[:count], self._cum_bytes[:count]
        self.memory_first += count

    def _cut_tail(self, end: int) -> None:
        """Forget the entries from ``end`` on."""
        if self._sparse is not None and end < self.memory_first:
            first, columns = self._sparse.take_tail(end)
            self._take_arrays(first, columns)
            if not self._sparse.rows:
                self._sparse = None
        keep = end - self.memory_first
        del self._offsets[keep:]
        del self._received[keep + 1 :], self._publish_lags[keep + 1 :]
        del self._cum_messages[keep + 1 :], self._cum_bytes[keep + 1 :]

    def _forget_entries(self, ordinal: int, totals: TopicTotals) -> None:
        """Forget all entries and continue with ``ordinal``."""
        self._sparse = None
        self._begin_arrays(ordinal, totals)

    def _begin_arrays(self, ordinal: int, totals: TopicTotals) -> None:
        messages, size_bytes, received_ms, lag_ms = totals
        self._take_arrays(
            ordinal,
            Columns(
                array("I"),
                array("q", (received_ms,)),
                array("I", (lag_ms,)),
                array("q", (messages,)),
                array("q", (size_bytes,)),
            ),
        )

    def _take_arrays(self, first: int, columns: Columns) -> None:
        self.memory_first = first
        self._offsets, self._received, self._publish_lags = columns[:3]
        self._cum_messages, self._cum_bytes = columns[3:]

    def _bound_entries(self, stop: int, received_ms: int) -> bool:
        """Bound the times of the entries below ``stop``, and of the entry before the first, whose
        time bounds those after it. Returns whether a receive time was later."""
        is_late = self.totals(max(stop, self.base)).received_ms > received_ms
        sparse, received, lags = self._sparse, self._received, self._publish_lags
        if sparse is not None:
            sparse.bound_times(stop, received_ms)
        if sparse is None or stop >= self.memory_first:
            end = max(stop - self.memory_first, 0) + 1
            for at in range(bisect_right(received, received_ms, 0, end), end):
                lags[at] = max(received_ms - received[at] + lags[at], 0)
                received[at] = received_ms
        return is_late


def _extend_sums(sums: array[int], more: array[int]) -> None:
    """Append to running sums. They are shifted if entries of unknown size are lost between."""
    step = sums[-1] - more[0]
    sums.extend(islice(more, 1, None) if not step else (value + step for value in more[1:]))
