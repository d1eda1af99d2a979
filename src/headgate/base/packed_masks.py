"""A sorted map from ordinals to bit masks that keeps many of them in few objects.

A dictionary of integers takes a hundred bytes for each mask beside its bits. This map is the lowest
level of a B+ tree: leaves of up to 64 masks, each leaf with its ordinals in one array and its masks
in one string of bytes. So a mask takes about twenty bytes beside its own.

A mask has a length: it is an integer below a bit whose index is the length
(``1 << length | bits``). In memory (native byte order, nothing stores it) it is one of::

    bits     u8 0 | the integer, little endian, in as many bytes as it needs
    edges    u8 width | the length, then each index at which the bits change from 0 to 1 or back;
             each in width bytes (1, 2 or 4)

Edges serve a mask of few runs, such as that of a batch whose first messages are acknowledged.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Final, NamedTuple

LEAF_MASKS_MAX: Final = 64
LEAF_BYTES_MAX: Final = 8 * 1024
"""A leaf that grows beyond that many bytes of masks is split, if it has more than one."""
EDGES_MAX: Final = 16
"""A mask with more changes between 0 and 1 is kept as bits, so that reading one stays cheap."""

_BITS: Final = 0
_CODES: Final = {1: "B", 2: "H", 4: "I"}


class Sums(NamedTuple):
    """What some masks are together."""

    masks_count: int = 0
    set_bits: int = 0
    """How many of their bits are 1, the highest one of each, which marks its length, left out."""
    length_bytes: int = 0
    """Their lengths in whole bytes, each rounded down."""

    @classmethod
    def of(cls, mask: int) -> Sums:
        """What one mask is."""
        return cls(1, mask.bit_count() - 1, (mask.bit_length() - 1) // 8)

    def plus(self, other: Sums) -> Sums:
        """The sums of both."""
        return Sums(*(one + two for one, two in zip(self, other, strict=True)))


class _Leaf:
    """Some masks, which lie one after the other in ``data``, in the order of their ordinals."""

    __slots__ = ("data", "ends", "length_bytes", "ordinals", "set_bits")

    def __init__(self, ordinals: array[int], ends: array[int], data: bytes) -> None:
        self.ordinals = ordinals
        self.ends = ends
        """Where each mask ends in ``data``."""
        self.data = data
        _, self.set_bits, self.length_bytes = self.sums_within(0, len(ordinals))

    def sums(self) -> Sums:
        return Sums(len(self.ordinals), self.set_bits, self.length_bytes)

    def sums_within(self, first: int, stop: int) -> Sums:
        """The sums of the masks at the indexes from ``first`` to before ``stop``."""
        masks = [self.mask(index) for index in range(first, stop)]
        return Sums(
            len(masks),
            sum([mask.bit_count() for mask in masks]) - len(masks),
            sum([(mask.bit_length() - 1) // 8 for mask in masks]),
        )

    def mask(self, index: int) -> int:
        return _decoded(self.data[self._start(index) : self.ends[index]])

    def insert(self, index: int, ordinal: int, mask: int) -> None:
        start = self._start(index)
        self.ordinals.insert(index, ordinal)
        self.ends.insert(index, start)
        self._replace(index, start, start, mask)
        self.length_bytes += (mask.bit_length() - 1) // 8
        self.set_bits += mask.bit_count() - 1

    def replace(self, index: int, mask: int) -> int:
        """Put another mask in the place of one; returns that."""
        before = self.mask(index)
        self._replace(index, self._start(index), self.ends[index], mask)
        self.length_bytes += (mask.bit_length() - 1) // 8 - (before.bit_length() - 1) // 8
        self.set_bits += mask.bit_count() - before.bit_count()
        return before

    def remove(self, first: int, stop: int) -> Sums:
        """Remove the masks at the indexes from ``first`` to before ``stop``; there are some."""
        removed = self.sums_within(first, stop)
        self._lose(removed)
        start, end = self._start(first), self.ends[stop - 1]
        self.data = self.data[:start] + self.data[end:]
        ends = self.ends
        self.ordinals = self.ordinals[:first] + self.ordinals[stop:]
        self.ends = ends[:first] + array("I", [at - end + start for at in ends[stop:]])
        return removed

    def cut_off(self, index: int) -> _Leaf:
        """Move the masks from ``index`` on to a new leaf."""
        start = self._start(index)
        rest = _Leaf(
            self.ordinals[index:],
            array("I", [at - start for at in self.ends[index:]]),
            self.data[start:],
        )
        self._lose(rest.sums())
        self.ordinals = self.ordinals[:index]
        self.ends = self.ends[:index]
        self.data = self.data[:start]
        return rest

    def append(self, other: _Leaf) -> None:
        """Add the masks of the leaf that follows."""
        start = len(self.data)
        self.ordinals = self.ordinals + other.ordinals
        self.ends = self.ends + array("I", [at + start for at in other.ends])
        self.data += other.data
        self.set_bits += other.set_bits
        self.length_bytes += other.length_bytes

    def _lose(self, gone: Sums) -> None:
        self.set_bits -= gone.set_bits
        self.length_bytes -= gone.length_bytes

    def _start(self, index: int) -> int:
        return self.ends[index - 1] if index else 0

    def _replace(self, index: int, start: int, stop: int, mask: int) -> None:
        data, ends, piece = self.data, self.ends, _encoded(mask)
        self.data = b"".join((data[:start], piece, data[stop:]))
        grown = len(piece) - (stop - start)
        if grown:
            for later in range(index, len(ends)):
                ends[later] += grown


class PackedMasks:
    """Masks by ordinal, ascending. Every operation on one mask takes time that does not depend on
    how many there are, but for the move of a few bytes for each leaf when leaves come or go."""

    __slots__ = ("_count", "_firsts", "_leaves")

    def __init__(self) -> None:
        self._count = 0
        self._firsts: list[int] = []
        """The first ordinal of each leaf."""
        self._leaves: list[_Leaf] = []

    def __len__(self) -> int:
        return self._count

    def __contains__(self, ordinal: int) -> bool:
        return self.get(ordinal) != 0

    def get(self, ordinal: int) -> int:
        """The mask of an ordinal; 0 without one."""
        at = bisect_right(self._firsts, ordinal) - 1
        if at < 0:
            return 0
        leaf = self._leaves[at]
        ordinals = leaf.ordinals
        index = bisect_left(ordinals, ordinal)
        if index == len(ordinals) or ordinals[index] != ordinal:
            return 0
        return leaf.mask(index)

    def put(self, ordinal: int, mask: int) -> int:
        """Set the mask of an ordinal, at least 1; returns the one before, 0 if there was none."""
        at = self._leaf_at(ordinal)
        if not self._leaves:
            self._firsts.append(ordinal)
            self._leaves.append(_Leaf(array("Q"), array("I"), b""))
        leaf = self._leaves[at]
        ordinals = leaf.ordinals
        index = bisect_left(ordinals, ordinal)
        before = 0
        if index < len(ordinals) and ordinals[index] == ordinal:
            before = leaf.replace(index, mask)
        else:
            leaf.insert(index, ordinal, mask)
            self._count += 1
            if not index:
                self._firsts[at] = ordinal
        if len(ordinals) > LEAF_MASKS_MAX or len(leaf.data) > LEAF_BYTES_MAX:
            self._split(at, index)
        return before

    def drop(self, first: int, stop: int) -> Sums:
        """Remove the masks from ``first`` to before ``stop``; returns what they were together.
        Takes a step for each leaf, and for each mask of the first and the last one."""
        dropped = Sums()
        at = keep = self._leaf_at(first)  # the leaves from ``keep`` to ``end`` become empty
        end = at
        while end < len(self._leaves) and self._firsts[end] < stop:
            leaf = self._leaves[end]
            ordinals = leaf.ordinals
            low, high = bisect_left(ordinals, first), bisect_left(ordinals, stop)
            if high - low == len(ordinals):
                dropped = dropped.plus(leaf.sums())
            else:
                if low < high:
                    dropped = dropped.plus(leaf.remove(low, high))
                    self._firsts[end] = leaf.ordinals[0]
                if not low and high:
                    break  # what is left of this leaf lies behind the range
                keep = end + 1
            end += 1
        if dropped.masks_count:
            del self._leaves[keep:end], self._firsts[keep:end]
            self._count -= dropped.masks_count
            for near in (keep, keep - 1, keep - 2):
                self._merge(near)
        return dropped

    def sums(self, first: int, stop: int) -> Sums:
        """What the masks from ``first`` to before ``stop`` are together; takes as many steps as
        :meth:`drop`."""
        masks_count = set_bits = length_bytes = 0
        firsts, leaves = self._firsts, self._leaves
        at, end = self._leaf_at(first), len(leaves)
        while at < end and firsts[at] < stop:
            leaf = leaves[at]
            if firsts[at] >= first and at + 1 < end and firsts[at + 1] <= stop:
                masks_count += len(leaf.ordinals)  # the whole leaf, which most are
                set_bits += leaf.set_bits
                length_bytes += leaf.length_bytes
            else:
                low, high = bisect_left(leaf.ordinals, first), bisect_left(leaf.ordinals, stop)
                some = leaf.sums_within(low, high)
                masks_count += some.masks_count
                set_bits += some.set_bits
                length_bytes += some.length_bytes
            at += 1
        return Sums(masks_count, set_bits, length_bytes)

    def _leaf_at(self, ordinal: int) -> int:
        """The index of the leaf that has an ordinal, or would have it."""
        return max(0, bisect_right(self._firsts, ordinal) - 1)

    def first_from(self, first: int) -> int:
        """The least ordinal that is not below ``first``; -1 without one."""
        at = bisect_right(self._firsts, first) - 1
        if at >= 0:
            ordinals = self._leaves[at].ordinals
            index = bisect_left(ordinals, first)
            if index < len(ordinals):
                return ordinals[index]
        return self._firsts[at + 1] if at + 1 < len(self._firsts) else -1

    def items(self, first: int = 0, stop: int | None = None) -> Iterator[tuple[int, int]]:
        """Ordinals and masks from ``first`` to before ``stop`` (None: all that follow), ascending.
        The map must not change meanwhile."""
        at = self._leaf_at(first)
        for leaf in self._leaves[at:]:
            ordinals = leaf.ordinals
            if stop is not None and ordinals[0] >= stop:
                return
            for index in range(bisect_left(ordinals, first), len(ordinals)):
                ordinal = ordinals[index]
                if stop is not None and ordinal >= stop:
                    return
                yield ordinal, leaf.mask(index)

    def ordinals(self) -> array[int]:
        """All ordinals, ascending: a copy of 8 bytes for each."""
        copied = array("Q")
        for leaf in self._leaves:
            copied.extend(leaf.ordinals)
        return copied

    def _split(self, at: int, grown: int) -> None:
        """Split a leaf that became too large by its mask at index ``grown``: in the middle of its
        bytes, or, if the map grew at its end, there: leaves of ascending ordinals are full."""
        leaf = self._leaves[at]
        count = len(leaf.ordinals)
        if count < 2:
            return
        grew_at_end = at + 1 == len(self._leaves) and grown + 1 == count
        middle = grown if grew_at_end else bisect_left(leaf.ends, len(leaf.data) // 2)
        rest = leaf.cut_off(min(max(middle, 1), count - 1))
        self._leaves.insert(at + 1, rest)
        self._firsts.insert(at + 1, rest.ordinals[0])

    def _merge(self, at: int) -> None:
        """Merge a leaf with the next one if both together would be at most three quarters full."""
        if not 0 <= at < len(self._leaves) - 1:
            return
        leaf, following = self._leaves[at], self._leaves[at + 1]
        if (
            len(leaf.ordinals) + len(following.ordinals) <= LEAF_MASKS_MAX * 3 // 4
            and len(leaf.data) + len(following.data) <= LEAF_BYTES_MAX * 3 // 4
        ):
            leaf.append(following)
            del self._leaves[at + 1], self._firsts[at + 1]


def _encoded(mask: int) -> bytes:
    length = mask.bit_length() - 1
    size_bytes = (length + 8) // 8
    bits = mask ^ (1 << length)
    edges = bits ^ (bits << 1)
    edges_count = edges.bit_count()
    width = 1 if length < 1 << 8 else 2 if length < 1 << 16 else 4
    if edges_count > EDGES_MAX or (edges_count + 1) * width >= size_bytes:
        return b"\0" + mask.to_bytes(size_bytes, "little")
    numbers = array(_CODES[width], (length,))
    while edges:
        lowest = edges & -edges
        numbers.append(lowest.bit_length() - 1)
        edges ^= lowest
    return bytes((width,)) + numbers.tobytes()


def _decoded(piece: bytes) -> int:
    width = piece[0]
    if width == _BITS:
        return int.from_bytes(piece[1:], "little")
    numbers = array(_CODES[width], piece[1:])
    mask = 1 << numbers[0]
    for edge in numbers[1:]:
        # The bits below both edges of a run cancel each other out.
        mask ^= (1 << edge) - 1
    return mask
