"""Message ids as Pulsar's clients serialize them: the protocol's ``MessageIdData``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyspark_pulsar.entries import EntryId
from pyspark_pulsar.offsets import varint_bytes

_LEDGER, _ENTRY, _PARTITION, _BATCH_INDEX, _BATCH_SIZE = (
    bytes((number << 3,)) for number in (1, 2, 3, 4, 6)
)
_FIRST_CHUNK = bytes((7 << 3 | 2,))


_LOW_BITS = 7
_LOW = (1 << _LOW_BITS) - 1
_LAST = [bytes((low,)) for low in range(1 << _LOW_BITS)]
_BEFORE_OTHERS = [bytes((low | 0x80,)) for low in range(1 << _LOW_BITS)]
"""The first byte of a number, which has its lowest bits: as its last byte, and before others."""


class MessageIds:
    """The ids of messages of one partition.

    They differ least in the lowest bits of the entry's id, so a block of 128 entries shares the
    rest. Most ids cost a quarter of a microsecond.
    """

    def __init__(self, partition: int) -> None:
        """``partition`` is -1 outside a partitioned topic."""
        self._partition = b"" if partition < 0 else _PARTITION + varint_bytes(partition)
        self._block = (-1, -1)
        """Ledger and highest bits of the entries that share what follows."""
        self._begin = self._end = b""
        self._lows = _LAST

    def of(
        self, place: EntryId, batch_indexes: Sequence[int], batch_size: int, first_chunk: EntryId
    ) -> list[bytes]:
        """The ids of messages of one entry.

        ``batch_size`` is 0 for an entry that is no batch. ``first_chunk`` differs from ``place``
        for a message in chunks.
        """
        begin = self._place(place)
        if not batch_size:
            if first_chunk != place:
                first = self._place(first_chunk)
                begin += _FIRST_CHUNK + varint_bytes(len(first)) + first
            return [begin] * len(batch_indexes)
        begin += _BATCH_INDEX
        end = _BATCH_SIZE + varint_bytes(batch_size)
        return [
            begin + (bytes((index,)) if index < 0x80 else varint_bytes(index)) + end
            for index in batch_indexes
        ]

    def of_entries(self, places: Iterable[EntryId]) -> list[bytes]:
        """The ids of messages outside of batches and chunks, one of each entry."""
        return [self._place(place) for place in places]

    def _place(self, entry: EntryId) -> bytes:
        ledger_id, entry_id = entry
        if (ledger_id, entry_id >> _LOW_BITS) != self._block:
            self._begin_block(ledger_id, entry_id >> _LOW_BITS)
        return self._begin + self._lows[entry_id & _LOW] + self._end

    def _begin_block(self, ledger_id: int, high: int) -> None:
        self._block = ledger_id, high
        self._begin = _LEDGER + varint_bytes(ledger_id) + _ENTRY
        self._lows = _BEFORE_OTHERS if high else _LAST
        self._end = (varint_bytes(high) if high else b"") + self._partition
