"""An index of entries with a time: sorted by ordinal, and the earliest time is found at once.

The entries lie in chunks of up to :data:`CHUNK_ENTRIES`, each in three arrays, so that one takes
about 25 bytes. A heap knows the earliest time of each chunk. Adding in the order of ordinals is an
append; what is due costs a look at its chunk.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from headgate.engine.lazy_min_heap import LazyMinHeap
from headgate.flow.quota.backlog import Amounts

CHUNK_ENTRIES = 128
"""Entries of a chunk at most; a fuller one is split."""

CHUNK_BYTES = 760
"""About what a chunk takes beside its entries: the object, three arrays, its place in the heap."""

ENTRY_BYTES = 20
"""What an entry takes in the arrays of its chunk."""

INDEXED_BYTES = ENTRY_BYTES + CHUNK_BYTES // CHUNK_ENTRIES
"""About what an entry takes in full chunks."""


class TimedEntry(NamedTuple):
    """An entry of the index."""

    ordinal: int
    time_ms: int
    messages: int
    size_bytes: int


class _Chunk:
    """Entries next to one another, in parallel arrays by ordinal."""

    __slots__ = ("earliest_ms", "ordinals", "sizes", "times")

    def __init__(self) -> None:
        self.ordinals = array("q")
        self.times = array("q")
        self.sizes = array("I")
        self.earliest_ms = 0
        """The least of ``times``; right after each change."""


def _earliest_of(chunk: _Chunk) -> int:
    return chunk.earliest_ms


class DelayedIndex:
    """Entries of one subscription, each with a time in milliseconds of the wall clock, its messages
    and its bytes. An entry is in it at most once."""

    __slots__ = ("_batches", "_chunks", "_firsts", "_heap", "entries", "messages", "size_bytes")

    def __init__(self) -> None:
        self._chunks: list[_Chunk] = []
        self._firsts: list[int] = []
        """The first ordinal of each chunk."""
        self._heap: LazyMinHeap[_Chunk] = LazyMinHeap(_earliest_of, ())
        self._batches: dict[int, int] = {}
        """Messages of the entries that are batches: clients do not batch delayed messages."""
        self.entries = self.messages = self.size_bytes = 0

    @property
    def memory_bytes(self) -> int:
        """About the memory of the index."""
        return ENTRY_BYTES * self.entries + CHUNK_BYTES * len(self._chunks)

    @property
    def amounts(self) -> Amounts:
        """What the index holds."""
        return Amounts(self.entries, self.messages, self.size_bytes)

    @property
    def earliest_ms(self) -> int | None:
        """The earliest time of an entry; None if there is no entry."""
        chunk = self._heap.top()
        return None if chunk is None else chunk.earliest_ms

    @property
    def first(self) -> int:
        """The lowest ordinal; -1 if there is no entry."""
        return self._firsts[0] if self._firsts else -1

    @property
    def last(self) -> int:
        """The highest ordinal; -1 if there is no entry."""
        return self._chunks[-1].ordinals[-1] if self._chunks else -1

    def __contains__(self, ordinal: int) -> bool:
        return self._find(ordinal) is not None

    def _find(self, ordinal: int) -> tuple[int, int] | None:
        """The chunk of an entry and its place there; None if it is not in the index."""
        number = bisect_right(self._firsts, ordinal) - 1
        if number < 0:
            return None
        ordinals = self._chunks[number].ordinals
        place = bisect_left(ordinals, ordinal)
        if place < len(ordinals) and ordinals[place] == ordinal:
            return number, place
        return None

    def add(self, ordinal: int, time_ms: int, messages: int, size_bytes: int) -> None:
        """Add an entry that is not in the index."""
        self.entries += 1
        self.messages += messages
        self.size_bytes += size_bytes
        if messages != 1:
            self._batches[ordinal] = messages
        number = bisect_right(self._firsts, ordinal) - 1
        if number < 0 and self._chunks:
            number = 0
            self._firsts[0] = ordinal
        is_last = number == len(self._chunks) - 1
        if number < 0 or (
            is_last
            and len(self._chunks[-1].ordinals) >= CHUNK_ENTRIES
            and ordinal > self._chunks[-1].ordinals[-1]
        ):
            self._chunks.append(_Chunk())
            self._firsts.append(ordinal)
            number = len(self._chunks) - 1
        chunk = self._chunks[number]
        place = bisect_left(chunk.ordinals, ordinal)
        is_new = not chunk.ordinals
        chunk.ordinals.insert(place, ordinal)
        chunk.times.insert(place, time_ms)
        chunk.sizes.insert(place, size_bytes)
        if is_new or time_ms < chunk.earliest_ms:
            chunk.earliest_ms = time_ms
            self._heap.changed(chunk)
        if len(chunk.ordinals) > CHUNK_ENTRIES:
            self._split(number)

    def _split(self, number: int) -> None:
        """Move the upper half of a chunk to a new one behind it."""
        lower, upper = self._chunks[number], _Chunk()
        middle = len(lower.ordinals) // 2
        upper.ordinals, lower.ordinals = lower.ordinals[middle:], lower.ordinals[:middle]
        upper.times, lower.times = lower.times[middle:], lower.times[:middle]
        upper.sizes, lower.sizes = lower.sizes[middle:], lower.sizes[:middle]
        lower.earliest_ms, upper.earliest_ms = min(lower.times), min(upper.times)
        self._chunks.insert(number + 1, upper)
        self._firsts.insert(number + 1, upper.ordinals[0])
        self._heap.changed(upper)  # that of the lower half did not fall

    def remove(self, ordinal: int) -> TimedEntry | None:
        """Remove an entry and return it; None if it is not in the index."""
        found = self._find(ordinal)
        if found is None:
            return None
        number, place = found
        chunk = self._chunks[number]
        time_ms, size_bytes = chunk.times[place], chunk.sizes[place]
        del chunk.ordinals[place], chunk.times[place], chunk.sizes[place]
        if not chunk.ordinals:
            self._drop(number)
        else:
            self._firsts[number] = chunk.ordinals[0]
            if time_ms == chunk.earliest_ms:
                chunk.earliest_ms = min(chunk.times)
        return self._counted_out(ordinal, time_ms, size_bytes)

    def _counted_out(self, ordinal: int, time_ms: int, size_bytes: int) -> TimedEntry:
        messages = self._batches.pop(ordinal, 1) if self._batches else 1
        self.entries -= 1
        self.messages -= messages
        self.size_bytes -= size_bytes
        return TimedEntry(ordinal, time_ms, messages, size_bytes)

    def _drop(self, number: int) -> None:
        self._heap.discard(self._chunks[number])
        del self._chunks[number], self._firsts[number]

    def take_until(self, time_ms: int) -> list[TimedEntry]:
        """Remove the entries of one chunk whose time is at most ``time_ms``, and return them by
        ordinal: up to :data:`CHUNK_ENTRIES`, none if the whole index has none."""
        chunk = self._heap.top()
        if chunk is None or chunk.earliest_ms > time_ms:
            return []
        ordinals, times, sizes = chunk.ordinals, chunk.times, chunk.sizes
        number = bisect_right(self._firsts, ordinals[0]) - 1
        places = [place for place, at_ms in enumerate(times) if at_ms <= time_ms]
        taken = [self._counted_out(ordinals[p], times[p], sizes[p]) for p in places]
        if len(places) == len(ordinals):
            self._drop(number)
            return taken
        for place in reversed(places):
            del ordinals[place], times[place], sizes[place]
        chunk.earliest_ms = min(times)
        self._firsts[number] = ordinals[0]
        return taken

    def remove_below(self, ordinal: int) -> Iterator[int]:
        """Remove the entries below ``ordinal``; yields after each chunk how many it removed."""
        while self._firsts and self._firsts[0] < ordinal:
            chunk = self._chunks[0]
            count = bisect_left(chunk.ordinals, ordinal)
            self.entries -= count
            self.messages -= count
            self.size_bytes -= sum(chunk.sizes[:count])
            if self._batches:
                for batch in chunk.ordinals[:count]:
                    self.messages -= self._batches.pop(batch, 1) - 1
            if count == len(chunk.ordinals):
                self._drop(0)
            else:
                del chunk.ordinals[:count], chunk.times[:count], chunk.sizes[:count]
                chunk.earliest_ms = min(chunk.times)
                self._firsts[0] = chunk.ordinals[0]
            yield count

    def run_stop(self, ordinal: int, stop: int) -> int:
        """The first ordinal from ``ordinal`` on that is not in the index; at most ``stop``."""
        while ordinal < stop and (found := self._find(ordinal)) is not None:
            number, place = found
            ordinals = self._chunks[number].ordinals
            offset = ordinal - place  # as long as it stays the same, there is no gap
            after = bisect_right(
                range(len(ordinals)), offset, place, key=lambda at: ordinals[at] - at
            )
            ordinal = offset + after
            if after < len(ordinals):
                break
        return min(ordinal, stop)

    def amounts_from(self, ordinal: int) -> Amounts:
        """What the entries from ``ordinal`` on hold. Costs a step for each of their chunks."""
        if ordinal > self.last:
            return Amounts(0, 0, 0)
        entries = messages = size_bytes = 0
        number = max(bisect_right(self._firsts, ordinal) - 1, 0)
        for chunk in self._chunks[number:]:
            place = bisect_left(chunk.ordinals, ordinal)
            entries += len(chunk.ordinals) - place
            size_bytes += sum(chunk.sizes[place:])
        messages = entries + sum(
            held - 1 for batch, held in self._batches.items() if batch >= ordinal
        )
        return Amounts(entries, messages, size_bytes)

    def within(self, first: int, stop: int) -> list[int]:
        """The ordinals of the entries from ``first`` to before ``stop``."""
        found: list[int] = []
        number = max(bisect_right(self._firsts, first) - 1, 0)
        while number < len(self._chunks) and self._firsts[number] < stop:
            ordinals = self._chunks[number].ordinals
            found += ordinals[bisect_left(ordinals, first) : bisect_left(ordinals, stop)]
            number += 1
        return found
