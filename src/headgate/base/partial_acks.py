"""Partly acknowledged entries: a bit mask of messages for each, by ordinal.

An entry may be a batch of messages. While only some of them are acknowledged, this module keeps
which ones; the entry itself counts as unacknowledged. Once all are acknowledged, the entry leaves
this set (headgate.base.ack_set does that).

Stored form of one entry (little endian), in ascending order of ordinals, none twice::

    partial   u64 ordinal | u32 messages of the batch | (messages + 7) / 8 bytes of mask
              Bit i of the mask, lowest bit of a byte first, is set if message i of the batch is
              acknowledged. At least one bit is set and one clear, and none is set beyond the batch.

If all messages behind a place are acknowledged, or none is, the mask may be cut off there. So it is
about as long as the words of the acknowledgement that a client sends, which leave out the same::

    partial   u64 ordinal | u32 messages of the batch + CUT_OFF [+ REST_ACKED] | u32 bytes of mask
              | mask. REST_ACKED: all messages beyond the mask are acknowledged, else none is.
"""

from __future__ import annotations

import struct
from array import array
from bisect import insort
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from headgate.base.errors import CorruptionError, InputError
from headgate.base.packed_masks import PackedMasks, Sums

BATCH_MESSAGES_MAX: Final = 1 << 20
"""The largest batch with individual acknowledgements: more messages than 5 MiB can hold."""

ENTRY_BYTES: Final = 34
"""What one partly acknowledged entry takes in memory at most on average, beside a bit for each of
its messages."""

SET_BYTES: Final = 170
"""What the partly acknowledged entries of a subscription take beside that, however few they are."""

MAP_BYTES: Final = 540
"""What they take beside both, once they are two: a map with one leaf."""

CUT_OFF: Final = 1 << 31
REST_ACKED: Final = 1 << 30
_CUT_OFF_BYTES_MIN: Final = 8
"""A mask is cut off if that saves more than this."""

_HEAD = struct.Struct("<QI")
PARTIAL_BYTES_MIN: Final = _HEAD.size
"""What an entry takes in the stored form, without its mask."""
_LENGTH = struct.Struct("<I")


class PartialEntry(NamedTuple):
    """One partly acknowledged entry."""

    ordinal: int
    acked_mask: int
    """Bit i is set when message i of the batch is acknowledged."""
    batch_size: int
    """Messages in the batch, acknowledged or not."""


class PartialAcks:
    """The partly acknowledged entries of one subscription.

    Each is one integer: its mask, below a bit whose index is the batch's size. The entry that began
    last is at hand, because most subscriptions have one such entry at a time, or acknowledge most
    messages in it. The others are in a compact map, which exists once there are two. A further set
    has the ordinals that changed since :meth:`take_changed`.
    """

    __slots__ = (
        "_changed",
        "_latest",
        "_latest_packed",
        "_map",
        "highest",
        "messages",
        "size_bytes",
    )

    def __init__(self) -> None:
        self._latest = -1
        """The entry at hand, which is not in the map; -1 without one."""
        self._latest_packed = 0
        self._map: PackedMasks | None = None
        self._changed: set[int] | None = None  # an empty set takes 216 bytes
        self.highest = -1
        """No ordinal here is higher. Read-only for callers."""
        self.messages = 0
        """Acknowledged messages of all entries. Read-only for callers."""
        self.size_bytes = SET_BYTES
        """About the bytes of memory that the entries may take: an acknowledgement of further
        messages of an entry does not change it. Read-only for callers."""

    def __len__(self) -> int:
        return (self._latest >= 0) + (0 if self._map is None else len(self._map))

    def __contains__(self, ordinal: int) -> bool:
        return self._get(ordinal) != 0

    def _get(self, ordinal: int) -> int:
        """An entry as one integer; 0 if it is not partly acknowledged."""
        if ordinal == self._latest:
            return self._latest_packed
        return 0 if self._map is None else self._map.get(ordinal)

    def acked_messages(self, ordinal: int) -> int:
        """Acknowledged messages of an entry; 0 if it is not partly acknowledged."""
        packed = self._get(ordinal)
        return packed.bit_count() - 1 if packed else 0

    def acked_mask(self, ordinal: int, batch_size: int) -> int:
        """The mask of an entry's acknowledged messages; 0 if it is not partly acknowledged.

        Raises:
            InputError: the entry has another batch size here.
        """
        packed = self._get(ordinal)
        if not packed:
            return 0
        known = packed.bit_length() - 1
        if known != batch_size:
            raise InputError(
                f"entry {ordinal} is a batch of {known} messages; acknowledged as one of "
                f"{batch_size}"
            )
        return packed ^ (1 << known)

    def mask_of(self, ordinal: int) -> int:
        """The mask of an entry's acknowledged messages; 0 if it is not partly acknowledged."""
        packed = self._get(ordinal)
        return packed ^ (1 << packed.bit_length() - 1) if packed else 0

    def left_of(self, ordinal: int) -> tuple[int, int] | None:
        """How many messages of an entry are acknowledged, and the mask of what is left; None if it
        is not partly acknowledged."""
        packed = self._get(ordinal)
        if not packed:
            return None
        return packed.bit_count() - 1, packed ^ ((1 << packed.bit_length()) - 1)

    def put(self, entry: PartialEntry) -> None:
        """Set the mask of an entry; it must have some but not all bits of the batch."""
        ordinal, acked_mask, batch_size = entry
        packed = acked_mask | (1 << batch_size)
        if ordinal == self._latest:
            known, self._latest_packed = self._latest_packed, packed
        elif self._map is not None and ordinal <= self.highest and ordinal in self._map:
            known = self._map.put(ordinal, packed)
        else:
            known = 0
            self._begin(ordinal, packed)
            self.size_bytes += ENTRY_BYTES + batch_size // 8
        self.messages += acked_mask.bit_count()
        if known:
            self.messages -= known.bit_count() - 1
        if self._changed is None:
            self._changed = {ordinal}
        else:
            self._changed.add(ordinal)

    def _begin(self, ordinal: int, packed: int) -> None:
        """Add an entry, which is at hand from now on."""
        if self._latest >= 0:
            if self._map is None:
                self._map = PackedMasks()
                self.size_bytes += MAP_BYTES
            self._map.put(self._latest, self._latest_packed)
        self._latest, self._latest_packed = ordinal, packed
        if ordinal > self.highest:
            self.highest = ordinal

    def drop(self, first: int, stop: int) -> int:
        """Remove the entries from ``first`` to before ``stop``; returns their number.

        Takes a step for 64 of them, and for each entry that changed.
        """
        if first > self.highest or (stop == first + 1 and first not in self):
            return 0
        dropped = Sums() if self._map is None else self._map.drop(first, stop)
        if self._map is not None and not self._map:
            self._map = None
            self.size_bytes -= MAP_BYTES
        if first <= self._latest < stop:
            dropped = dropped.plus(Sums.of(self._latest_packed))
            self._latest, self._latest_packed = -1, 0
        self.messages -= dropped.set_bits
        self.size_bytes -= ENTRY_BYTES * dropped.masks_count + dropped.length_bytes
        if self._changed is not None:
            if stop == first + 1:
                self._changed.discard(first)
            else:
                self._changed = {o for o in self._changed if not first <= o < stop}
        return dropped.masks_count

    def first_within(self, first: int, stop: int) -> int:
        """The first partly acknowledged entry from ``first`` to before ``stop``; ``stop`` if there
        is none."""
        found = -1 if self._map is None else self._map.first_from(first)
        if not first <= found < stop:
            found = stop
        return self._latest if first <= self._latest < found else found

    def messages_within(self, first: int, stop: int) -> int:
        """Acknowledged messages of the entries from ``first`` to before ``stop``.

        Takes a step for 64 of them.
        """
        found = 0 if self._map is None else self._map.sums(first, stop).set_bits
        if first <= self._latest < stop:
            found += self._latest_packed.bit_count() - 1
        return found

    def ordinals(self) -> array[int]:
        """The ordinals of all entries, ascending: a copy of 8 bytes for each."""
        copied = array("Q") if self._map is None else self._map.ordinals()
        if self._latest >= 0:
            insort(copied, self._latest)
        return copied

    def entries_of(self, ordinals: Iterable[int]) -> Iterator[PartialEntry]:
        """Those of these entries that are partly acknowledged."""
        for ordinal in ordinals:
            packed = self._get(ordinal)
            if packed:
                yield _entry(ordinal, packed)

    def entries(self, first: int = 0, stop: int | None = None) -> Iterator[PartialEntry]:
        """The entries from ``first`` to before ``stop`` (None: all that follow), ascending.
        None may come or go meanwhile."""
        latest = self._latest
        if latest >= first and (stop is None or latest < stop):
            yield from self._entries_of_map(first, latest)
            yield _entry(latest, self._latest_packed)
            first = latest + 1
        yield from self._entries_of_map(first, stop)

    def _entries_of_map(self, first: int, stop: int | None) -> Iterator[PartialEntry]:
        if self._map is not None:
            for ordinal, packed in self._map.items(first, stop):
                yield _entry(ordinal, packed)

    def has_changed(self) -> bool:
        """Whether :meth:`take_changed` would return something."""
        return bool(self._changed)

    def take_changed(self) -> tuple[PartialEntry, ...]:
        """The entries that changed since the last call, each with its whole mask."""
        changed, self._changed = self._changed, None
        return tuple(_entry(ordinal, self._get(ordinal)) for ordinal in sorted(changed or ()))

    def forget_changed(self) -> None:
        """As :meth:`take_changed`, for callers that need none of them."""
        self._changed = None


def _entry(ordinal: int, packed: int) -> PartialEntry:
    size = packed.bit_length() - 1
    return PartialEntry(ordinal, packed ^ (1 << size), size)


def check_batch(ordinal: int, indexes_mask: int, batch_size: int) -> None:
    """Raise :class:`InputError` unless the mask names messages of a batch of that size."""
    if not 1 <= batch_size <= BATCH_MESSAGES_MAX:
        raise InputError(
            f"entry {ordinal} acknowledged as a batch of {batch_size} messages; 1 to "
            f"{BATCH_MESSAGES_MAX} is allowed"
        )
    if indexes_mask < 0 or indexes_mask >> batch_size:
        raise InputError(
            f"an acknowledgement of entry {ordinal} names messages beyond its batch of {batch_size}"
        )


def encode_partials(entries: Iterable[PartialEntry]) -> bytes:
    """Encode entries, one after the other."""
    parts = []
    for ordinal, acked_mask, batch_size in entries:
        whole_bytes = (batch_size + 7) // 8
        acked_bits = acked_mask.bit_length()
        left_bits = (acked_mask ^ ((1 << batch_size) - 1)).bit_length()
        size_bytes = (min(acked_bits, left_bits) + 7) // 8
        if whole_bytes - size_bytes <= _CUT_OFF_BYTES_MIN:
            parts.append(_HEAD.pack(ordinal, batch_size))
            parts.append(acked_mask.to_bytes(whole_bytes, "little"))
            continue
        rest = REST_ACKED if left_bits < acked_bits else 0
        kept = acked_mask & ((1 << 8 * size_bytes) - 1)
        parts.append(_HEAD.pack(ordinal, batch_size | CUT_OFF | rest))
        parts.append(_LENGTH.pack(size_bytes))
        parts.append(kept.to_bytes(size_bytes, "little"))
    return b"".join(parts)


def decode_partials(data: bytes, at: int, count: int, after: int) -> tuple[PartialEntry, ...]:
    """Decode ``count`` entries above the ordinal ``after``, which fill ``data`` from ``at`` on.

    Raises :class:`CorruptionError` if the data is anything else.
    """
    entries: list[PartialEntry] = []
    for _ in range(count):
        if at + _HEAD.size > len(data):
            raise CorruptionError(f"a partly acknowledged entry is cut short at byte {at}")
        ordinal, batch_size = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        rest_mask = 0
        if batch_size & CUT_OFF:
            at, stop, rest_mask = _cut_off(data, at, batch_size)
            batch_size &= REST_ACKED - 1
        else:
            stop = at + (batch_size + 7) // 8
        acked_mask = int.from_bytes(data[at:stop], "little") | rest_mask
        at = stop
        if ordinal <= after or batch_size > BATCH_MESSAGES_MAX or stop > len(data):
            raise CorruptionError(
                f"entry {ordinal}, partly acknowledged, is out of order, of {batch_size} "
                f"messages, or cut short"
            )
        if not 0 < acked_mask < (1 << batch_size) - 1:
            raise CorruptionError(
                f"entry {ordinal} of {batch_size} messages has a mask that is not of some of them"
            )
        entries.append(PartialEntry(ordinal, acked_mask, batch_size))
        after = ordinal
    if at != len(data):
        raise CorruptionError(f"partly acknowledged entries end at byte {at} of {len(data)}")
    return tuple(entries)


def _cut_off(data: bytes, at: int, head: int) -> tuple[int, int, int]:
    """Where a mask begins and ends that is cut off, and the acknowledged messages beyond it."""
    batch_size = head & (REST_ACKED - 1)
    if at + _LENGTH.size > len(data):
        raise CorruptionError(f"a partly acknowledged entry is cut short at byte {at}")
    (size_bytes,) = _LENGTH.unpack_from(data, at)
    if batch_size > BATCH_MESSAGES_MAX or size_bytes > batch_size // 8:
        raise CorruptionError(
            f"a partly acknowledged batch of {batch_size} messages has {size_bytes} bytes of mask"
        )
    rest_mask = 0
    if head & REST_ACKED:
        rest_mask = (1 << batch_size) - (1 << 8 * size_bytes)
    at += _LENGTH.size
    return at, at + size_bytes, rest_mask
