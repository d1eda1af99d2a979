"""The index of a topic's older entries, which lies in the footers of sealed segments.

In memory is one row for each block: where it is, and the topic's totals and times before it. That
is 56 bytes for up to 128 entries, in arrays, with no object for a run or a block. What lies at the
beginning of a row is known from the row; anything else needs the block, which
:class:`headgate.ledger.index.block_cache.BlockCache` has or reads.

A row may begin within its block, because entries before it are trimmed or in another file. The
totals in the rows count: those in the blocks differ if entries of unknown size were lost between.
Times count likewise: no time in a block is after that of the next row (see receive_time_bound.py).

A *pinned* row has its columns in memory: entries that were lost, or whose block is damaged, or that
were indexed before the first sealed segment of this start.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

from headgate.base.errors import InvariantError
from headgate.ledger.index.block_cache import (
    Block,
    BlockCache,
    BlockKey,
    BlockMissingError,
    BlockPart,
)
from headgate.ledger.index.columns import (
    Columns,
    RunningTotals,
    TopicTotals,
    cut_columns,
    extend_columns,
    shifted,
)
from headgate.ledger.index.index_block import BLOCK_ENTRIES, block_bytes
from headgate.ledger.index.stored_run import StoredRun

_PINNED = -1
_BLOCK_BYTES_MAX = block_bytes(BLOCK_ENTRIES)
_CUT_ROWS_MIN = 64
"""Rows of trimmed entries are taken from the arrays when there are as many, and half of all."""


class SparseIndex:
    """The rows of one topic, in the order of ordinals and without gaps."""

    __slots__ = (
        "_cache", "_files", "_firsts", "_lags", "_low", "_messages", "_number", "_offsets",
        "_pinned", "_places", "_received", "_sizes", "after", "stop",
    )  # fmt: skip

    def __init__(self, number: int, cache: BlockCache) -> None:
        self._number = number
        self._cache = cache
        self._low = 0
        """Rows before this one are trimmed."""
        self._firsts = array("q")
        self._files = array("q")
        self._places = array("q")
        self._offsets = array("I")
        self._received = array("q")
        self._lags = array("I")
        self._messages = array("q")
        self._sizes = array("q")
        self._pinned: dict[int, Block] = {}
        """Columns of pinned rows, by the first ordinal of the row."""
        self.stop = 0
        """One past the last ordinal."""
        self.after = TopicTotals(0, 0, 0, 0)
        """The topic's totals up to and with the last entry."""

    @property
    def first(self) -> int:
        """The first ordinal; :attr:`stop` without a row."""
        return self._firsts[self._low] if self._low < len(self._firsts) else self.stop

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self._firsts) - self._low

    # Growing --------------------------------------------------------------------------------

    def add_stored(self, run: StoredRun, first: int, stop: int, before: TopicTotals | None) -> None:
        """Add entries ``first`` to ``stop`` of a stored run behind the others. ``before`` are the
        topic's totals before them; None if they are as stored.

        Reads a block if one of the ends lies within it.
        """
        base, sparse = len(self._firsts), run.sparse
        high = self._add_rows(run, first, stop)
        self.stop = min(run.first_of(high), run.stop)
        after = run.row + high
        self.after = (
            run.after
            if self.stop == run.stop
            else TopicTotals(
                sparse.messages[after],
                sparse.sizes[after],
                sparse.received[after],
                sparse.publish_lags[after],
            )
        )
        if self._firsts[base] < first:
            self._begin_row(base, first)
        if before is not None:
            messages = before.messages - self._messages[base]
            self._shift(base, messages, before.size_bytes - self._sizes[base])
        if stop < self.stop:
            self.after = self.totals(stop)
            self.stop = stop

    def add_sealed(
        self, run: StoredRun, first: int, offset: int, before: TopicTotals, after: TopicTotals
    ) -> None:
        """Add the entries of a stored run from ``first`` on behind the others. The record of
        ``first`` begins at ``offset``; the totals are those before it and behind the run."""
        base = len(self._firsts)
        self._add_rows(run, first, run.stop)
        self.stop, self.after = run.stop, run.after
        messages = after.messages - run.after.messages
        self._shift(base, messages, after.size_bytes - run.after.size_bytes)
        self._firsts[base], self._offsets[base] = first, offset
        self._messages[base], self._sizes[base] = before[:2]
        self._received[base], self._lags[base] = before[2:]

    def _add_rows(self, run: StoredRun, first: int, stop: int) -> int:
        """Add the rows of the blocks with these entries; returns the number of the block behind
        them."""
        low = (first - run.first) // run.block_entries
        high = -(-(stop - run.first) // run.block_entries)
        sparse, rows = run.sparse, slice(run.row + low, run.row + high)
        self._offsets.extend(sparse.offsets[rows])
        self._received.extend(sparse.received[rows])
        self._lags.extend(sparse.publish_lags[rows])
        self._messages.extend(sparse.messages[rows])
        self._sizes.extend(sparse.sizes[rows])
        blocks = range(low, high)
        self._firsts.extend(map(run.first_of, blocks))
        self._places.extend(map(run.place_of, blocks))
        self._files.extend([run.file] * len(blocks))
        return high

    def add_columns(self, first: int, columns: Columns) -> None:
        """Add entries behind the others, with their columns in memory."""
        count = len(columns.offsets)
        self._firsts.append(first)
        self._files.append(0)
        self._places.append(_PINNED)
        self._offsets.append(columns.offsets[0])
        self._received.append(columns.received[0])
        self._lags.append(columns.publish_lags[0])
        self._messages.append(columns.messages[0])
        self._sizes.append(columns.sizes[0])
        self._pinned[first] = Block(first, columns)
        self.stop = first + count
        self.after = TopicTotals(
            columns.messages[-1], columns.sizes[-1], columns.received[-1], columns.publish_lags[-1]
        )

    def _shift(self, base: int, messages: int, size_bytes: int) -> None:
        """Shift the totals of the rows from ``base`` on, and what follows them."""
        if not messages and not size_bytes:
            return
        for row in range(base, len(self._firsts)):
            self._messages[row] += messages
            self._sizes[row] += size_bytes
        after = self.after
        self.after = after._replace(
            messages=after.messages + messages, size_bytes=after.size_bytes + size_bytes
        )

    def replace(self, run: StoredRun, offsets: array[int], after: TopicTotals) -> None:
        """Lead the entries of a stored run, as far as they are here, to it: they lie in another
        file now. ``offsets`` are those of all its entries, ``after`` are the totals behind it."""
        first, stop = max(run.first, self.first), min(run.stop, self.stop)
        if first >= stop:
            return
        self._split_pinned(first)
        self._split_pinned(stop)
        low = self._row(first)
        high = bisect_left(self._firsts, stop, low)
        index = SparseIndex(self._number, self._cache)
        before = self._totals_of(low)
        index.add_sealed(run, first, offsets[first - run.first], before, after)
        count = bisect_left(index._firsts, stop)
        limit = self._totals_of(high) if high < len(self._firsts) else self.after
        for row in range(count - 1, 0, -1):
            if index._received[row] <= limit.received_ms:
                break
            lag_ms = limit.received_ms - index._received[row] + index._lags[row]
            index._received[row], index._lags[row] = limit.received_ms, max(lag_ms, 0)
        for dropped in self._firsts[low:high] if self._pinned else ():
            self._pinned.pop(dropped, None)
        for own, new in zip(self._arrays(), index._arrays(), strict=True):
            own[low:high] = new[:count]

    def _split_pinned(self, first: int) -> None:
        """Let a row begin at an entry within a pinned row, which may have several segments. Both
        rows keep the columns of it."""
        row = self._row(first)
        block = self._pinned.get(self._firsts[row])
        if block is None or not self._firsts[row] < first < self._row_stop(row):
            return
        offset = block.columns.offsets[first - block.first]
        messages, size_bytes, received_ms, lag_ms = self.totals(first)
        values = (first, 0, _PINNED, offset, received_ms, lag_ms, messages, size_bytes)
        for column, value in zip(self._arrays(), values, strict=True):
            column.insert(row + 1, value)
        self._pinned[first] = block

    # Shrinking ------------------------------------------------------------------------------

    def cut_head(self, first: int) -> None:
        """Drop the entries below ``first``, which is at most :attr:`stop`."""
        if first >= self.stop:
            self._clear(first)
            return
        row = self._row(first)
        if self._firsts[row] < first:
            self._begin_row(row, first)
        for dropped in self._firsts[self._low : row] if self._pinned else ():
            self._pinned.pop(dropped, None)
        self._low = row
        if row >= _CUT_ROWS_MIN and 2 * row >= len(self._firsts):
            for column in self._arrays():
                del column[:row]
            self._low = 0

    def take_tail(self, stop: int) -> tuple[int, Columns]:
        """Drop the entries from ``stop`` on; returns the first ordinal and the columns of the row
        that had the entry before, which is dropped, too."""
        row = self._row(max(stop - 1, self.first))
        first = self._firsts[row]
        columns = self.columns(first, max(stop, first))
        totals = self._totals_of(row)
        for dropped in self._firsts[row:]:
            self._pinned.pop(dropped, None)
        for column in self._arrays():
            del column[row:]
        self.stop, self.after = first, totals
        return first, columns

    def _begin_row(self, row: int, first: int) -> None:
        """Let a row begin at an entry within it. Its offset stays that of an earlier record."""
        totals = self.totals(first)
        pinned = self._pinned.pop(self._firsts[row], None)
        if pinned is not None:
            self._pinned[first] = pinned
        self._firsts[row] = first
        self._messages[row], self._sizes[row] = totals[:2]
        self._received[row], self._lags[row] = totals[2:]

    def _clear(self, first: int) -> None:
        for column in self._arrays():
            del column[:]
        self._pinned.clear()
        self._low = 0
        self.stop = first

    def _arrays(self) -> tuple[array[int], ...]:
        return (
            self._firsts, self._files, self._places, self._offsets, self._received, self._lags,
            self._messages, self._sizes,
        )  # fmt: skip

    # Look-ups -------------------------------------------------------------------------------

    def totals(self, ordinal: int) -> TopicTotals:
        """The totals before an entry, :attr:`first` to :attr:`stop`."""
        if ordinal >= self.stop:
            return self.after
        row = self._row(ordinal)
        if self._firsts[row] >= ordinal:
            return self._totals_of(row)
        found = self._cache.known_totals(self._number, ordinal)
        if found is None:
            found = self._totals_within(row, ordinal)
            self._cache.remember_totals(self._number, ordinal, found)
        return found

    def totals_near(self, ordinal: int) -> tuple[TopicTotals, bool]:
        """The totals before an entry, and whether they are exact. Without its block they are those
        before the first entry of that."""
        if ordinal >= self.stop:
            return self.after, True
        row = self._row(ordinal)
        if self._firsts[row] >= ordinal:
            return self._totals_of(row), True
        found = self._cache.known_totals(self._number, ordinal)
        if found is None and self._is_present(row):
            found = self._totals_within(row, ordinal)
        return (self._totals_of(row), False) if found is None else (found, True)

    def received_latest_ms(self, ordinal: int) -> int:
        """The latest possible receive time of an entry: that of the last one of its block."""
        row = self._row(ordinal) + 1
        return self._received[row] if row < len(self._firsts) else self.after.received_ms

    def _totals_within(self, row: int, ordinal: int) -> TopicTotals:
        block, (messages, size_bytes) = self._block(row)
        at, columns = ordinal - block.first, block.columns
        return TopicTotals(
            columns.messages[at] + messages,
            columns.sizes[at] + size_bytes,
            *self._bounded(row, columns, at),
        )

    def running_totals(self, first: int, stop: int) -> RunningTotals | None:
        """The running totals of the entries from ``first`` to ``stop``, at most to the end of their
        row; None if their block is not in memory."""
        block = self._present(first)
        if block is None:
            return None
        row_stop = self._row_stop(self._row(first))
        columns = block.columns
        return columns.messages, columns.sizes, block.first, min(stop, row_stop)

    def message_count(self, ordinal: int) -> int:
        """Messages in an entry."""
        block = self._present(ordinal)
        if block is None:
            return self.totals(ordinal + 1).messages - self.totals(ordinal).messages
        totals, at = block.columns.messages, ordinal - block.first
        return totals[at + 1] - totals[at]

    def size_bytes(self, ordinal: int) -> int:
        """Bytes of an entry."""
        block = self._present(ordinal)
        if block is None:
            return self.totals(ordinal + 1).size_bytes - self.totals(ordinal).size_bytes
        totals, at = block.columns.sizes, ordinal - block.first
        return totals[at + 1] - totals[at]

    def first_with(self, wanted_ms: int, *, published: bool) -> int:
        """The first entry received, or published, at or after a time; :attr:`stop` if none."""
        received, lags = self._received, self._lags

        def before_row(row: int) -> int:
            return received[row] - lags[row] if published else received[row]

        rows = range(self._low, len(self._firsts))
        row = self._low + bisect_left(rows, wanted_ms, key=before_row) - 1
        if row < self._low:
            return self.first
        high = self._row_stop(row)

        def time_of(ordinal: int) -> int:
            at = ordinal + 1
            times = self.totals(at) if at >= high else self._totals_within(row, at)
            return times.received_ms - times.publish_lag_ms if published else times.received_ms

        entries = range(self._firsts[row], high)
        return self._firsts[row] + bisect_left(entries, wanted_ms, key=time_of)

    def first_with_bytes(self, size_bytes: int) -> int:
        """The first entry before which the topic has at least so many bytes; :attr:`stop` if
        there is none."""
        row = bisect_left(self._sizes, size_bytes, self._low) - 1
        if row < self._low:
            return self.first
        entries = range(self._firsts[row] + 1, self._row_stop(row))

        def bytes_before(ordinal: int) -> int:
            return self._totals_within(row, ordinal).size_bytes

        return entries.start + bisect_left(entries, size_bytes, key=bytes_before)

    def columns(self, first: int, end: int) -> Columns:
        """The index of a range of entries."""
        found = Columns(*(array(code) for code in "IqIqq"))
        row = self._row(first)
        while row < len(self._firsts) and self._firsts[row] < end:
            low, high = max(first, self._firsts[row]), min(end, self._row_stop(row))
            extend_columns(found, self._part(row, low, high))
            row += 1
        if not found.messages:
            totals = self.totals(first)
            for column, value in zip(found[1:], (*totals[2:], *totals[:2]), strict=True):
                column.append(value)
        return found

    def missing(self, first: int, end: int) -> list[BlockKey]:
        """The blocks with entries of a range that are not in memory."""
        if not first < end or first >= self.stop:
            return []
        row = self._row(first)
        stop = bisect_left(self._firsts, end, row)
        return [self._key(each) for each in range(row, stop) if not self._is_present(each)]

    def indexed_stop(self, first: int, stop: int) -> int:
        """Up to where the index of entries from ``first`` on is in memory, at most ``stop``."""
        row = self._row(first)
        while first < stop and row < len(self._firsts) and self._is_present(row):
            row += 1
            first = min(self._row_stop(row - 1), stop)
        return stop if first >= self.stop else first

    def is_indexed(self, ordinal: int) -> bool:
        """Whether the block of an entry is in memory."""
        return self._is_present(self._row(ordinal))

    def blocks_of(self, ordinals: Iterable[int]) -> list[Block]:
        """The blocks with these entries. Raises :class:`BlockMissingError` with all that are not
        in memory."""
        rows = dict.fromkeys(map(self._row, ordinals))
        missing = [self._key(row) for row in rows if not self._is_present(row)]
        if missing:
            raise BlockMissingError(missing)
        return [self._block(row)[0] for row in rows]

    def pin(self, key: BlockKey, block: Block) -> bool:
        """Keep the columns of a block that was rebuilt, as long as the topic retains its entries.
        False if the topic has no such block any more."""
        if not self.has(key):
            return False
        self._places[self._row(key.first)] = _PINNED
        self._pinned[key.first] = block
        return True

    def has(self, key: BlockKey) -> bool:
        """Whether the entries of a block are still retained, and still in that block."""
        if not self.first <= key.first < self.stop:
            return False
        row = self._row(key.first)
        place = self._firsts[row], self._files[row], self._places[row]
        return place == (key.first, key.file, key.place)

    # Times ----------------------------------------------------------------------------------

    def bound_times(self, stop: int, received_ms: int) -> None:
        """Bound the times of the entries below ``stop``, and of the entry before the first."""
        for row in range(self._low, len(self._firsts)):
            if self._received[row] > received_ms and (
                row == self._low or self._firsts[row] <= stop
            ):
                lag_ms = received_ms - self._received[row] + self._lags[row]
                self._received[row], self._lags[row] = received_ms, max(lag_ms, 0)
        after = self.after
        if self.stop <= stop and after.received_ms > received_ms:
            lag_ms = max(received_ms - after.received_ms + after.publish_lag_ms, 0)
            self.after = after._replace(received_ms=received_ms, publish_lag_ms=lag_ms)

    def _bounded(self, row: int, columns: Columns, at: int) -> tuple[int, int]:
        """Receive time and lag at a place of a row's columns, bounded by the time of what follows:
        times never fall, so a later one is from before a bound."""
        received_ms, lag_ms = columns.received[at], columns.publish_lags[at]
        is_last = row + 1 >= len(self._firsts)
        limit_ms = self.after.received_ms if is_last else self._received[row + 1]
        if received_ms <= limit_ms:
            return received_ms, lag_ms
        return limit_ms, max(limit_ms - received_ms + lag_ms, 0)

    # Rows -----------------------------------------------------------------------------------

    def _row(self, ordinal: int) -> int:
        return max(bisect_right(self._firsts, ordinal, self._low) - 1, self._low)

    def _row_stop(self, row: int) -> int:
        return self._firsts[row + 1] if row + 1 < len(self._firsts) else self.stop

    def _totals_of(self, row: int) -> TopicTotals:
        return TopicTotals(
            self._messages[row], self._sizes[row], self._received[row], self._lags[row]
        )

    def _key(self, row: int) -> BlockKey:
        file, place, begin = self._files[row], self._places[row], self._offsets[row]
        is_last = row + 1 >= len(self._firsts)
        is_same = not is_last and self._files[row + 1] == file and self._places[row + 1] >= 0
        end = self._offsets[row + 1] if is_same else place
        return BlockKey(
            self._number,
            self._firsts[row],
            self._row_stop(row),
            file,
            place,
            _BLOCK_BYTES_MAX,
            range(begin, max(end, begin)),
            self._totals_of(row),
            self.after if is_last else self._totals_of(row + 1),
        )

    def _is_present(self, row: int) -> bool:
        place = self._places[row]
        return place == _PINNED or self._cache.has(self._files[row], place)

    def _present(self, ordinal: int) -> Block | None:
        """The block of an entry, if it is in memory."""
        row = bisect_right(self._firsts, ordinal, self._low) - 1
        place = self._places[row]
        if place == _PINNED:
            return self._pinned[self._firsts[row]]
        return self._cache.get(self._files[row], place)

    def _block(self, row: int) -> tuple[Block, tuple[int, int]]:
        """The block of a row, and what the row's messages and bytes are above those in it."""
        place = self._places[row]
        if place == _PINNED:
            block = self._pinned[self._firsts[row]]
        else:
            block = self._cache.get(self._files[row], place) or self._load(row)
        columns, at = block.columns, self._firsts[row] - block.first
        messages = self._messages[row] - columns.messages[at]
        return block, (messages, self._sizes[row] - columns.sizes[at])

    def _load(self, row: int) -> Block:
        fetched = self._cache.load(self._key(row))
        self._cache.keep(fetched, self)
        block = fetched.block
        if block is None:
            raise InvariantError("a last try brings a block, if only one of lost entries")
        return block

    def parts(self, first: int, end: int) -> Iterator[Columns | BlockPart]:
        """The index of a range of entries, without the blocks that are not in memory."""
        row = self._row(first)
        while row < len(self._firsts) and self._firsts[row] < end:
            low, high = max(first, self._firsts[row]), min(end, self._row_stop(row))
            if self._is_present(row):
                yield self._part(row, low, high)
            else:
                yield BlockPart(self._key(row), low, high)
            row += 1

    def _part(self, row: int, low: int, high: int) -> Columns:
        block, (messages, size_bytes) = self._block(row)
        at, to = low - block.first, high - block.first
        part = shifted(cut_columns(block.columns, at, to), messages, size_bytes)
        for index in range(len(part.received) - 1, -1, -1):
            bounded = self._bounded(row, block.columns, at + index)
            if bounded[0] == part.received[index]:
                break
            part.received[index], part.publish_lags[index] = bounded
        return part


def stored_totals(run: StoredRun, first: int, cache: BlockCache) -> TopicTotals:
    """The totals before an entry of a stored run, as stored."""
    index = SparseIndex(run.topic_number, cache)
    index.add_stored(run, first, run.stop, None)
    return index.totals(first)
