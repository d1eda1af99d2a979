"""An index of entries with a time: sorted by ordinal, and the earliest time is found at once.

The entries lie in chunks of up to :data:`CHUNK_ENTRIES`, each in three arrays, or four if some are
batches, so that one takes about 25 bytes. A heap knows the earliest time of each chunk. Adding in
the order of ordinals is an append; what is due costs a look at its chunk.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from headgate.base.lazy_min_heap import LazyMinHeap
from headgate.flow.quota.backlog import Amounts

CHUNK_ENTRIES = 128
"""Entries of a chunk at most; a fuller one is split."""

JOINED_MAX = CHUNK_ENTRIES // 4
"""A chunk with no more entries is joined with one beside it if both have :data:`FEW_ENTRIES` at
most: of very many chunks one entry each may stay, which would take thirty times what it counts."""
FEW_ENTRIES = CHUNK_ENTRIES * 3 // 4

_COPIED_AT = CHUNK_ENTRIES // 2, CHUNK_ENTRIES // 4
"""When so many entries are left of a chunk, its arrays are copied."""

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

    __slots__ = ("earliest_ms", "messages", "more_messages", "ordinals", "size_bytes", "sizes",
                 "times")  # fmt: skip

    def __init__(self) -> None:
        self.ordinals = array("q")
        self.times = array("q")
        self.sizes = array("I")
        self.messages: array[int] | None = None
        """Of each entry; None while each has one: clients do not batch delayed messages."""
        self.more_messages = 0
        """Messages of all entries beyond one of each."""
        self.size_bytes = 0
        """Bytes of all entries."""
        self.earliest_ms = 0
        """The least of ``times``; right after each change."""

    def insert(self, place: int, entry: TimedEntry) -> None:
        """Put an entry before the one at a place."""
        if self.messages is None and entry.messages != 1:
            self.messages = array("I", [1]) * len(self.ordinals)
        self.ordinals.insert(place, entry.ordinal)
        self.times.insert(place, entry.time_ms)
        self.sizes.insert(place, entry.size_bytes)
        if self.messages is not None:
            self.messages.insert(place, entry.messages)
        self.more_messages += entry.messages - 1
        self.size_bytes += entry.size_bytes

    def pop(self, place: int) -> TimedEntry:
        """Remove the entry at a place and return it."""
        messages = 1 if self.messages is None else self.messages.pop(place)
        size_bytes = self.sizes.pop(place)
        self.more_messages -= messages - 1
        self.size_bytes -= size_bytes
        popped = TimedEntry(self.ordinals.pop(place), self.times.pop(place), messages, size_bytes)
        if len(self.ordinals) in _COPIED_AT:
            self._copy()
        return popped

    def _copy(self) -> None:
        """Give memory back: an array from which entries are removed one by one stays as large."""
        self.ordinals, self.times, self.sizes = self.ordinals[:], self.times[:], self.sizes[:]
        if self.messages is not None:
            self.messages = self.messages[:]

    def amounts(self, first: int, stop: int) -> Amounts:
        """What the entries from place ``first`` to before ``stop`` hold."""
        entries, messages = stop - first, stop - first
        if self.messages is not None:
            messages = sum(self.messages[first:stop])
        return Amounts(entries, messages, sum(self.sizes[first:stop]))

    def delete(self, first: int, stop: int) -> Amounts:
        """Remove the entries from place ``first`` to before ``stop``; returns what they held."""
        amounts = self.amounts(first, stop)
        del self.ordinals[first:stop], self.times[first:stop], self.sizes[first:stop]
        if self.messages is not None:
            del self.messages[first:stop]
        self.more_messages -= amounts.messages - amounts.entries
        self.size_bytes -= amounts.bytes
        return amounts

    def split(self) -> _Chunk:
        """Remove the upper half and return it."""
        upper, middle = _Chunk(), len(self.ordinals) // 2
        upper.ordinals, upper.times = self.ordinals[middle:], self.times[middle:]
        upper.sizes = self.sizes[middle:]
        if self.messages is not None:
            upper.messages = self.messages[middle:]
        moved = self.delete(middle, len(self.ordinals))
        upper.more_messages, upper.size_bytes = moved.messages - moved.entries, moved.bytes
        self.earliest_ms, upper.earliest_ms = min(self.times), min(upper.times)
        return upper

    def extend(self, upper: _Chunk) -> None:
        """Take the entries of a chunk that is behind this one; that one is empty then."""
        if self.messages is not None or upper.messages is not None:
            self.messages = self._each_messages() + upper._each_messages()
        self.ordinals += upper.ordinals
        self.times += upper.times
        self.sizes += upper.sizes
        self.more_messages += upper.more_messages
        self.size_bytes += upper.size_bytes
        self.earliest_ms = min(self.earliest_ms, upper.earliest_ms)
        upper.delete(0, len(upper.ordinals))  # the heap may refer to it for a while

    def _each_messages(self) -> array[int]:
        return array("I", [1]) * len(self.ordinals) if self.messages is None else self.messages


def _earliest_of(chunk: _Chunk) -> int:
    return chunk.earliest_ms


class DelayedIndex:
    """Entries of one subscription, each with a time in milliseconds of the wall clock, its messages
    and its bytes. An entry is in it at most once."""

    __slots__ = ("_chunks", "_firsts", "_heap", "entries", "messages", "size_bytes")

    def __init__(self) -> None:
        self._chunks: list[_Chunk] = []
        self._firsts: list[int] = []
        """The first ordinal of each chunk."""
        self._heap: LazyMinHeap[_Chunk] = LazyMinHeap(_earliest_of, ())
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
        chunk.insert(place, TimedEntry(ordinal, time_ms, messages, size_bytes))
        if is_new or time_ms < chunk.earliest_ms:
            chunk.earliest_ms = time_ms
            self._heap.changed(chunk)
        if len(chunk.ordinals) > CHUNK_ENTRIES:
            self._split(number)

    def _split(self, number: int) -> None:
        """Move the upper half of a chunk to a new one behind it."""
        upper = self._chunks[number].split()
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
        entry = chunk.pop(place)
        self._count_out(Amounts(1, entry.messages, entry.size_bytes))
        if not chunk.ordinals:
            self._drop(number)
        else:
            self._firsts[number] = chunk.ordinals[0]
            if entry.time_ms == chunk.earliest_ms:
                chunk.earliest_ms = min(chunk.times)
            self._join_few(number)
        return entry

    def _count_out(self, amounts: Amounts) -> None:
        self.entries -= amounts.entries
        self.messages -= amounts.messages
        self.size_bytes -= amounts.bytes

    def _drop(self, number: int) -> None:
        self._heap.discard(self._chunks[number])
        del self._chunks[number], self._firsts[number]

    def _join_few(self, number: int) -> None:
        """Join a chunk that has few entries left with the one behind or before it."""
        chunks = self._chunks
        count = len(chunks[number].ordinals)
        if count > JOINED_MAX:
            return
        for lower in (number, number - 1):
            if 0 <= lower < len(chunks) - 1:
                beside = chunks[lower + (lower == number)]
                if count + len(beside.ordinals) <= FEW_ENTRIES:
                    chunks[lower].extend(chunks[lower + 1])
                    self._drop(lower + 1)
                    self._heap.changed(chunks[lower])
                    return

    def take_until(self, time_ms: int) -> list[TimedEntry]:
        """Remove the entries of one chunk whose time is at most ``time_ms``, and return them by
        ordinal: up to :data:`CHUNK_ENTRIES`, none if the whole index has none."""
        chunk = self._heap.top()
        if chunk is None or chunk.earliest_ms > time_ms:
            return []
        number = bisect_right(self._firsts, chunk.ordinals[0]) - 1
        places = [place for place, at_ms in enumerate(chunk.times) if at_ms <= time_ms]
        taken = [chunk.pop(place) for place in reversed(places)]
        taken.reverse()
        messages, size_bytes = sum(e.messages for e in taken), sum(e.size_bytes for e in taken)
        self._count_out(Amounts(len(taken), messages, size_bytes))
        if not chunk.ordinals:
            self._drop(number)
        else:
            chunk.earliest_ms = min(chunk.times)
            self._firsts[number] = chunk.ordinals[0]
            self._join_few(number)
        return taken

    def remove_below(self, ordinal: int) -> Iterator[int]:
        """Remove the entries below ``ordinal``; yields after each chunk how many it removed."""
        while self._firsts and self._firsts[0] < ordinal:
            chunk = self._chunks[0]
            count = bisect_left(chunk.ordinals, ordinal)
            self._count_out(chunk.delete(0, count))
            if not chunk.ordinals:
                self._drop(0)
            else:
                chunk.earliest_ms = min(chunk.times)
                self._firsts[0] = chunk.ordinals[0]
                self._join_few(0)
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
        """What the entries from ``ordinal`` on hold. A limiter asks for this at each message and
        each FLOW: it costs a step for each chunk before or behind that entry, whichever are
        fewer."""
        if ordinal <= self.first:
            return self.amounts
        if ordinal > self.last:
            return Amounts(0, 0, 0)
        number = bisect_right(self._firsts, ordinal) - 1
        chunk = self._chunks[number]
        place = bisect_left(chunk.ordinals, ordinal)
        if 2 * number < len(self._chunks):
            before = _sum(self._chunks[:number], chunk.amounts(0, place))
            return Amounts(*(a - b for a, b in zip(self.amounts, before, strict=True)))
        return _sum(self._chunks[number + 1 :], chunk.amounts(place, len(chunk.ordinals)))

    def within(self, first: int, stop: int) -> list[int]:
        """The ordinals of the entries from ``first`` to before ``stop``."""
        found: list[int] = []
        number = max(bisect_right(self._firsts, first) - 1, 0)
        while number < len(self._chunks) and self._firsts[number] < stop:
            ordinals = self._chunks[number].ordinals
            found += ordinals[bisect_left(ordinals, first) : bisect_left(ordinals, stop)]
            number += 1
        return found


def _sum(chunks: list[_Chunk], part: Amounts) -> Amounts:
    """What whole chunks and a part of another one hold together."""
    entries, messages, size_bytes = part
    for chunk in chunks:
        entries += len(chunk.ordinals)
        messages += len(chunk.ordinals) + chunk.more_messages
        size_bytes += chunk.size_bytes
    return Amounts(entries, messages, size_bytes)
