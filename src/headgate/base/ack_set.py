"""The acknowledgements of a subscription, over the ordinals of its topic.

All ordinals up to *mark delete* are acknowledged. Above it, a bitmap in blocks of 4,096 ordinals
marks individual acknowledgements. A block exists only while it has a set bit. So a million
alternating holes take less than a megabyte, and acknowledging an entry touches one byte, however
many holes there are. A partly acknowledged entry does not count as acknowledged; its messages are
kept apart (headgate.base.partial_acks) until all of them are acknowledged.

The set also collects its changes since the last :meth:`AckSet.take_changes`. The log stores these
and not the whole set. Changes are idempotent, also on a set that has some of them already, because
a change either sets bits or first replaces everything.

Stored forms (little endian; the container adds a checksum and a version)::

    changes   see headgate.base.ack_changes
    whole     i64 mark delete | u32 blocks | u32 partly acknowledged entries
              | blocks * (u64 block number, 512 bytes of bits)
              | partials (headgate.base.partial_acks)
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Generator, Iterator
from typing import Final

from headgate.base.ack_changes import AckChanges, merged
from headgate.base.errors import CorruptionError, InputError
from headgate.base.partial_acks import (
    PartialAcks,
    PartialEntry,
    check_batch,
    decode_partials,
    encode_partials,
)

_BLOCK_SHIFT = 12
BLOCK_ORDINALS: Final = 1 << _BLOCK_SHIFT
_BLOCK_MASK = BLOCK_ORDINALS - 1
_BLOCK_BYTES = BLOCK_ORDINALS // 8
_FULL_BYTE = 0xFF

BLOCK_MEMORY_BYTES: Final = 800
"""What a block takes: its bytes, its object, its sums and its places in tables."""

FEW_RUNS: Final = 512
"""Runs of acknowledged entries that may be gone through again and again: about 0.4 ms."""
_FEW_BLOCKS: Final = 64
"""Blocks for which the same holds."""

_WHOLE_HEAD = struct.Struct("<qII")
_BLOCK_HEAD = struct.Struct("<Q")


class AckSet:
    """The acknowledgements of one subscription: a mark-delete ordinal, a bitmap of ordinals above
    it, and the acknowledged messages of partly acknowledged entries."""

    __slots__ = ("_above", "_blocks", "_changed", "_changed_ranges", "_reset", "_resets_count",
                 "_taken", "counted", "mark_delete", "partials", "sums")  # fmt: skip

    def __init__(self, mark_delete: int = -1) -> None:
        """A new set in which exactly the ordinals up to ``mark_delete`` are acknowledged."""
        if mark_delete < -1:
            raise InputError(f"mark_delete is {mark_delete}; -1 or more is allowed")
        self.mark_delete = mark_delete
        """All ordinals up to this one are acknowledged; -1 for none. Read-only for callers."""
        self.counted: tuple[object, tuple[int, int, int]] | None = None
        """What a cursor that has ended with its topic had counted, for the next one; see
        :meth:`headgate.engine.cursor.Cursor.keep_counts`."""
        self.partials: PartialAcks | None = None
        """The partly acknowledged entries, all above ``mark_delete``; None for none. Read-only for
        callers."""
        self.sums: dict[int, list[int]] = {}
        """By block, what its acknowledged entries have: see :mod:`headgate.base.block_sums`."""
        self._blocks: dict[int, bytearray] = {}
        self._above = 0  # set bits and partly acknowledged entries: one test for both
        self._changed: list[int] = []
        self._changed_ranges: list[tuple[int, int]] = []
        self._reset = False
        self._resets_count = 0
        self._taken = mark_delete

    @property
    def holes_count(self) -> int:
        """How many ordinals above ``mark_delete`` are acknowledged."""
        partials = self.partials
        return self._above if partials is None else self._above - len(partials)

    @property
    def blocks_bytes(self) -> int:
        """Memory of the blocks: a block is there for each 4,096 ordinals with one that is
        acknowledged above ``mark_delete``."""
        return BLOCK_MEMORY_BYTES * len(self._blocks)

    @property
    def stored_parts_count(self) -> int:
        """Of how many blocks and partly acknowledged entries the stored form consists."""
        return len(self._blocks) + (0 if self.partials is None else len(self.partials))

    @property
    def holes_span(self) -> int:
        """How many ordinals there are from ``mark_delete`` to the last acknowledged one; 0 if none
        above it is."""
        if not self.holes_count:
            return 0
        number = max(self._blocks)
        bits = int.from_bytes(self._blocks[number], "little")
        return (number << _BLOCK_SHIFT) + bits.bit_length() - 1 - self.mark_delete

    def holes_below(self, stop: int) -> int:
        """How many ordinals above ``mark_delete`` and below ``stop`` are acknowledged."""
        count = 0
        for number in self.block_numbers(0, stop):
            bits = int.from_bytes(self._blocks[number], "little")
            within = stop - (number << _BLOCK_SHIFT)
            if within < BLOCK_ORDINALS:
                bits &= (1 << within) - 1
            count += bits.bit_count()
        return count

    def begins_block(self, ordinal: int) -> bool:
        """Whether an acknowledgement of one entry begins a block."""
        return ordinal > self.mark_delete + 1 and ordinal >> _BLOCK_SHIFT not in self._blocks

    def ack(self, ordinal: int) -> bool:
        """Acknowledge one entry; False if it was acknowledged before."""
        mark = self.mark_delete
        if ordinal <= mark:
            return False
        if ordinal == mark + 1:
            self.mark_delete = ordinal
            if self._above:
                if self.partials is not None:
                    self._forget_partials(ordinal, ordinal + 1)
                after = ordinal + 1
                block = self._blocks.get(after >> _BLOCK_SHIFT)
                if ordinal & 7 == 7 or (
                    block is not None and block[(after & _BLOCK_MASK) >> 3] & (1 << (after & 7))
                ):
                    self._absorb(ordinal)
            return True
        number = ordinal >> _BLOCK_SHIFT
        block = self._blocks.get(number)
        if block is None:
            block = self._blocks[number] = bytearray(_BLOCK_BYTES)
        index = (ordinal & _BLOCK_MASK) >> 3
        bit = 1 << (ordinal & 7)
        bits = block[index]
        if bits & bit:
            return False
        block[index] = bits | bit
        self._above += 1
        self._changed.append(ordinal)
        if self.partials is not None:
            self._forget_partials(ordinal, ordinal + 1)
        return True

    def ack_messages(self, ordinal: int, indexes_mask: int, batch_size: int) -> int:
        """Acknowledge messages of one entry: bit i of the mask stands for message i of its batch.

        Returns how many are new. With the last one the entry is acknowledged as a whole.

        Raises:
            InputError: the batch has no message or more than ``BATCH_MESSAGES_MAX``, the mask
                names one beyond it, or the entry is known with another batch size.
        """
        check_batch(ordinal, indexes_mask, batch_size)
        if self.is_acked(ordinal):
            return 0
        known = self.acked_mask(ordinal, batch_size)
        acked = known | indexes_mask
        if acked == (1 << batch_size) - 1:
            self.ack(ordinal)
        elif acked != known:
            self.put_partial(PartialEntry(ordinal, acked, batch_size), known)
        return (acked ^ known).bit_count()

    def acked_mask(self, ordinal: int, batch_size: int) -> int:
        """The mask of the acknowledged messages of a partly acknowledged entry; 0 for any other.
        Raises :class:`InputError` if the entry is known with another batch size."""
        partials = self.partials
        return 0 if partials is None else partials.acked_mask(ordinal, batch_size)

    def put_partial(self, entry: PartialEntry, known: int) -> None:
        """Acknowledge further messages of an unacknowledged entry, not all. Of these ``known`` were
        acknowledged before: its :meth:`acked_mask`."""
        partials = self.partials
        if partials is None:
            partials = self.partials = PartialAcks()
        if not known:
            self._above += 1
        partials.put(entry)

    def partly_acked(self, ordinal: int) -> int:
        """Acknowledged messages of a partly acknowledged entry; 0 for any other."""
        partials = self.partials
        return 0 if partials is None else partials.acked_messages(ordinal)

    @property
    def partial_bytes(self) -> int:
        """About the bytes of memory that the partly acknowledged entries take."""
        partials = self.partials
        return 0 if partials is None else partials.size_bytes

    def partial_messages(self, first: int, stop: int) -> int:
        """Acknowledged messages of the partly acknowledged entries from ``first`` to before
        ``stop``. Takes a step for each ordinal in the range or each such entry, whichever is
        less; if nothing lies behind the range, also at most one for each ordinal before it."""
        partials = self.partials
        if partials is None:
            return 0
        lowest = self.mark_delete + 1
        if partials.highest < stop and first - lowest < stop - first:
            return partials.messages - partials.messages_within(lowest, first)
        return partials.messages_within(first, stop)

    def partly_acked_mask(self, ordinal: int) -> int:
        """The mask of the acknowledged messages of a partly acknowledged entry; 0 for any other."""
        partials = self.partials
        return 0 if partials is None else partials.mask_of(ordinal)

    def partial_entries(self, first: int = 0, stop: int | None = None) -> Iterator[PartialEntry]:
        """The partly acknowledged entries from ``first`` to before ``stop`` (None: all that
        follow), ascending."""
        partials = self.partials
        return iter(()) if partials is None else partials.entries(first, stop)

    def ack_range(self, first: int, last: int) -> int:
        """Acknowledge ``first`` to ``last``, both included; returns how many are new."""
        first = max(first, self.mark_delete + 1)
        if last < first:
            return 0
        if first == self.mark_delete + 1:
            return self.ack_through(last)
        new = 0
        at = first
        while at <= last:
            stop = min(last, at | _BLOCK_MASK)
            new += self._set_in_block(at, stop)
            at = stop + 1
        if new:
            self._above += new
            self._changed_ranges.append((first, last))
            if self.partials is not None:
                self._forget_partials(first, last + 1)
        return new

    def ack_through(self, ordinal: int) -> int:
        """Acknowledge everything up to ``ordinal`` (cumulative); returns how many are new."""
        mark = self.mark_delete
        if ordinal <= mark:
            return 0
        new = ordinal - mark
        if self._above:
            dropped = self.holes_below(ordinal + 1)
            new -= dropped
            self._above -= dropped
            if self.partials is not None:
                self._forget_partials(mark + 1, ordinal + 1)
        self.mark_delete = ordinal
        if self._blocks:
            self._drop_blocks(mark, ordinal + 1)
            self._absorb(ordinal)
        return new

    def reset(self, mark_delete: int) -> None:
        """Replace the set, for a seek: exactly the ordinals up to ``mark_delete`` are in it."""
        if mark_delete < -1:
            raise InputError(f"mark_delete is {mark_delete}; -1 or more is allowed")
        self.mark_delete = mark_delete
        self._blocks.clear()
        self.sums.clear()
        self._above = 0
        self.partials = None
        self._changed.clear()
        self._changed_ranges.clear()
        self._reset = True
        self._resets_count += 1

    def is_acked(self, ordinal: int) -> bool:
        """Whether an entry is acknowledged."""
        if ordinal <= self.mark_delete:
            return True
        block = self._blocks.get(ordinal >> _BLOCK_SHIFT)
        if block is None:
            return False
        return bool(block[(ordinal & _BLOCK_MASK) >> 3] & (1 << (ordinal & 7)))

    def next_unacked(self, from_ordinal: int, end: int) -> int:
        """The first ordinal >= ``from_ordinal`` that is not acknowledged, at most ``end``."""
        at = self.mark_delete + 1
        if from_ordinal > at:
            at = from_ordinal
        if not self._above:
            return at if at < end else end
        while at < end:
            block = self._blocks.get(at >> _BLOCK_SHIFT)
            if block is None:
                return at
            found = _next_clear(block, at & _BLOCK_MASK)
            at = (at & ~_BLOCK_MASK) + found
            if found < BLOCK_ORDINALS:
                break
        return min(at, end)

    def unacked_run(self, from_ordinal: int, end: int, length_max: int) -> tuple[int, int]:
        """The first run ``(first, stop)`` of unacknowledged ordinals from ``from_ordinal`` on, of
        at most ``length_max`` ordinals below ``end``."""
        first = self.next_unacked(from_ordinal, end)
        stop = first + length_max
        if stop > end:
            stop = end
        if not self._above:
            return first, stop
        at = first
        while at < stop:
            block = self._blocks.get(at >> _BLOCK_SHIFT)
            base = at & ~_BLOCK_MASK
            found = BLOCK_ORDINALS if block is None else _next_set(block, at & _BLOCK_MASK)
            at = base + found
            if found < BLOCK_ORDINALS:
                break
        return first, min(at, stop)

    def acked_ranges(self, stop: int | None = None, start: int = 0) -> Iterator[tuple[int, int]]:
        """Ranges ``(first, last)`` of acknowledged ordinals above ``mark_delete``, from ``start``
        to below ``stop`` (None: all), ascending. Blocks outside that cost nothing."""
        open_first = open_last = -1
        for number in self.block_numbers(start, stop):
            base = number << _BLOCK_SHIFT
            bits = int.from_bytes(self._blocks[number], "little")
            if stop is not None and stop - base < BLOCK_ORDINALS:
                bits &= (1 << (stop - base)) - 1
            if start > base:
                bits &= -1 << (start - base)
            # As text, lowest bit first: a search in a text needs no copy of the block.
            text = f"{bits:b}"[::-1]
            at = text.find("1")
            while at >= 0:
                end = text.find("0", at)
                if end < 0:
                    end = len(text)
                if open_first >= 0 and base + at == open_last + 1:
                    open_last = base + end - 1
                else:
                    if open_first >= 0:
                        yield open_first, open_last
                    open_first, open_last = base + at, base + end - 1
                at = text.find("1", end)
        if open_first >= 0:
            yield open_first, open_last

    def block_numbers(self, first: int, stop: int | None) -> list[int]:
        """The numbers of blocks that may have ordinals from ``first`` to below ``stop`` (None:
        all that follow), ascending."""
        blocks, low = self._blocks, max(self.mark_delete + 1, first) >> _BLOCK_SHIFT
        if stop is None:
            return sorted(number for number in blocks if number >= low)
        high = -(-stop >> _BLOCK_SHIFT)
        if high - low <= len(blocks):
            return [number for number in range(low, high) if number in blocks]
        return sorted(number for number in blocks if low <= number < high)

    def acked_in_block(self, number: int) -> int:
        """How many entries of a block are acknowledged, those up to ``mark_delete`` left out."""
        return int.from_bytes(self._blocks.get(number, b""), "little").bit_count()

    @property
    def ranges_count(self) -> int:
        """The number of ranges that :meth:`acked_ranges` yields. Takes a step for each block of
        4,096 ordinals, so counting a million holes takes well under a millisecond."""
        count = 0
        before, carry = -2, 0
        for number in sorted(self._blocks):
            bits = int.from_bytes(self._blocks[number], "little")
            count += (bits & ~(bits << 1)).bit_count()
            if carry and number == before + 1:
                count -= bits & 1
            before, carry = number, bits >> (BLOCK_ORDINALS - 1)
        return count

    def has_few_runs_from(self, first: int) -> bool:
        """Whether :meth:`acked_ranges` from ``first`` on yields few: at most :data:`FEW_RUNS`, in
        at most :data:`_FEW_BLOCKS` blocks. Takes a step for each of these."""
        low = first >> _BLOCK_SHIFT
        numbers = [number for number in self._blocks if number >= low]
        if len(numbers) > _FEW_BLOCKS:
            return False
        runs = 0
        for number in numbers:
            bits = int.from_bytes(self._blocks[number], "little")
            runs += (bits & ~(bits << 1)).bit_count()
        return runs <= FEW_RUNS

    def has_changes(self) -> bool:
        """Whether :meth:`take_changes` would return something."""
        return bool(
            self._reset
            or self.mark_delete != self._taken
            or self._changed
            or self._changed_ranges
            or (self.partials is not None and self.partials.has_changed())
        )

    def take_changes(self) -> AckChanges | None:
        """The changes since the last call, which the caller must store; None without any."""
        if not self.has_changes():
            return None
        mark = self.mark_delete
        runs: list[tuple[int, int]] = [(o, o) for o in self._changed if o > mark]
        runs.extend((max(a, mark + 1), b) for a, b in self._changed_ranges if b > mark)
        partials = () if self.partials is None else self.partials.take_changed()
        changes = AckChanges(self._reset, mark, tuple(merged(runs)), partials)
        self.forget_changes()
        return changes

    def forget_changes(self) -> None:
        """Drop the collected changes: for sets that no log stores, which would collect forever."""
        if self.partials is not None:
            self.partials.forget_changed()
        self._changed.clear()
        self._changed_ranges.clear()
        self._reset = False
        self._taken = self.mark_delete

    def whole(self) -> AckChanges:
        """Changes that make any set equal to this one. Keeps the collected changes."""
        return AckChanges(
            True, self.mark_delete, tuple(self.acked_ranges()), tuple(self.partial_entries())
        )

    def apply(self, changes: AckChanges) -> None:
        """Apply ``changes`` without collecting them, for recovery.

        Raises :class:`CorruptionError` if they give a batch another size than the set has.
        """
        if changes.reset:
            self.reset(changes.mark_delete)
        else:
            self.ack_through(changes.mark_delete)
        for first, last in changes.runs:
            if first == last:  # nearly always: a replay may have millions
                self.ack(first)
            else:
                self.ack_range(first, last)
        try:
            for entry in changes.partials:
                self.ack_messages(*entry)
        except InputError as error:
            raise CorruptionError(f"acknowledgement changes do not fit: {error}") from error
        self.forget_changes()

    def to_bytes(self) -> bytes:
        """Encode the whole set."""
        partials_count = 0 if self.partials is None else len(self.partials)
        partials = encode_partials(self.partial_entries())
        return self._blocks_to_bytes(partials_count) + partials

    def to_bytes_in_pieces(self, entries_max: int) -> Generator[None, None, bytes]:
        """Encode the whole set, with a pause after so many partly acknowledged entries.

        The set may change in a pause. The result has everything that was acknowledged at the
        beginning, but for entries of which the rest was acknowledged in a pause; and it may have
        some of what changed. So the changes since the beginning, applied to it, give the present
        set. A reset ends it: what follows the reset replaces the result.

        Entries that clients begin to acknowledge in a pause are left out: they may do that as fast
        as the others are encoded, and the checkpoint of all topics waits for this.
        """
        whole, resets_count = self._blocks_to_bytes(0), self._resets_count
        ordinals = array("Q") if self.partials is None else self.partials.ordinals()
        parts: list[bytes] = []
        count = 0
        for start in range(0, len(ordinals), entries_max):
            if resets_count != self._resets_count or self.partials is None:
                break
            some = list(self.partials.entries_of(ordinals[start : start + entries_max]))
            parts.append(encode_partials(some))
            count += len(some)
            yield
        mark_delete, blocks_count, _ = _WHOLE_HEAD.unpack_from(whole)
        head = _WHOLE_HEAD.pack(mark_delete, blocks_count, count)
        return b"".join([head, whole[_WHOLE_HEAD.size :], *parts])

    def _blocks_to_bytes(self, partials_count: int) -> bytes:
        """The stored form up to so many partly acknowledged entries, which follow."""
        parts = [_WHOLE_HEAD.pack(self.mark_delete, len(self._blocks), partials_count)]
        for number in sorted(self._blocks):
            parts.append(_BLOCK_HEAD.pack(number))
            parts.append(bytes(self._blocks[number]))
        return b"".join(parts)

    @classmethod
    def from_bytes(cls, data: bytes) -> AckSet:
        """Decode a whole set. Raises :class:`CorruptionError` if ``data`` is not one."""
        if len(data) < _WHOLE_HEAD.size:
            raise CorruptionError(f"an acknowledgement set is cut short at {len(data)} bytes")
        mark_delete, count, partials_count = _WHOLE_HEAD.unpack_from(data)
        step = _BLOCK_HEAD.size + _BLOCK_BYTES
        if mark_delete < -1 or len(data) < _WHOLE_HEAD.size + count * step:
            raise CorruptionError(
                f"an acknowledgement set of {count} blocks above {mark_delete} "
                f"has {len(data)} bytes"
            )
        made = cls(mark_delete)
        at = _WHOLE_HEAD.size
        for _ in range(count):
            (number,) = _BLOCK_HEAD.unpack_from(data, at)
            block = bytearray(data[at + _BLOCK_HEAD.size : at + step])
            made._blocks[number] = block
            made._above += int.from_bytes(block, "little").bit_count()
            at += step
        for entry in decode_partials(data, at, partials_count, mark_delete):
            if made.is_acked(entry.ordinal):
                raise CorruptionError(f"entry {entry.ordinal} is acknowledged wholly and partly")
            made.put_partial(entry, 0)  # its mask is checked, and no entry is there twice
        if made.partials is not None:
            made.partials.forget_changed()
        return made

    def _forget_partials(self, first: int, stop: int) -> None:
        """Drop partial acknowledgements of entries that are now acknowledged or reset."""
        partials = self.partials
        if partials is not None:
            self._above -= partials.drop(first, stop)
            if not partials:
                self.partials = None

    def _set_in_block(self, first: int, last: int) -> int:
        """Set bits in one block; returns how many were clear."""
        number = first >> _BLOCK_SHIFT
        self.sums.pop(number, None)
        block = self._blocks.get(number)
        if block is None:
            block = self._blocks[number] = bytearray(_BLOCK_BYTES)
        low, high = first & _BLOCK_MASK, last & _BLOCK_MASK
        mask = ((1 << (high - low + 1)) - 1) << low
        bits = int.from_bytes(block, "little")
        block[:] = (bits | mask).to_bytes(_BLOCK_BYTES, "little")
        return (mask & ~bits).bit_count()

    def _absorb(self, mark_before: int) -> None:
        """Move mark delete over the acknowledged run that now touches it."""
        at = self.mark_delete + 1
        while True:
            block = self._blocks.get(at >> _BLOCK_SHIFT)
            if block is None:
                break
            place = at & _BLOCK_MASK
            found = _next_clear(block, place)
            self._above -= found - place
            at += found - place
            if found < BLOCK_ORDINALS:
                break
        self.mark_delete = at - 1
        self._drop_blocks(mark_before, at)

    def _drop_blocks(self, mark_before: int, first: int) -> None:
        """Clear all bits below ``first``; none is set at or below ``mark_before``."""
        blocks = self._blocks
        sums = self.sums
        if not self.holes_count:
            blocks.clear()
            sums.clear()
            return
        number = first >> _BLOCK_SHIFT
        sums.pop(number, None)
        lowest = max(mark_before, 0) >> _BLOCK_SHIFT
        if number - lowest <= len(blocks):
            for old in range(lowest, number):
                blocks.pop(old, None)
                sums.pop(old, None)
        else:
            for old in [n for n in blocks if n < number]:
                del blocks[old]
                sums.pop(old, None)
        own = blocks.get(number)
        if own is None:
            return
        place = first & _BLOCK_MASK
        whole = place >> 3
        own[:whole] = bytes(whole)
        own[whole] &= (_FULL_BYTE << (place & 7)) & _FULL_BYTE


def _next_clear(block: bytearray, place: int) -> int:
    """The first clear bit of ``block`` at or after ``place``; 4,096 without one."""
    bits = ~int.from_bytes(block, "little") & ((1 << BLOCK_ORDINALS) - 1)
    bits >>= place
    return place + (bits & -bits).bit_length() - 1 if bits else BLOCK_ORDINALS


def _next_set(block: bytearray, place: int) -> int:
    """The first set bit of ``block`` at or after ``place``; 4,096 without one."""
    bits = int.from_bytes(block, "little") >> place
    return place + (bits & -bits).bit_length() - 1 if bits else BLOCK_ORDINALS
