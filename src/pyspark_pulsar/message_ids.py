"""Message ids as Pulsar's clients serialize them: the protocol's ``MessageIdData``."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark_pulsar.entries import EntryId
from pyspark_pulsar.offsets import varint_bytes

_LEDGER, _ENTRY, _PARTITION, _BATCH_INDEX, _BATCH_SIZE = (
    bytes((number << 3,)) for number in (1, 2, 3, 4, 6)
)
_FIRST_CHUNK = bytes((7 << 3 | 2,))


class MessageIds:
    """The ids of messages of one partition; most cost half a microsecond."""

    def __init__(self, partition: int) -> None:
        """``partition`` is -1 outside a partitioned topic."""
        self._partition = b"" if partition < 0 else _PARTITION + varint_bytes(partition)
        self._ledger_id = -1
        self._ledger = b""

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

    def _place(self, entry: EntryId) -> bytes:
        ledger_id, entry_id = entry
        if ledger_id != self._ledger_id:
            self._ledger_id = ledger_id
            self._ledger = _LEDGER + varint_bytes(ledger_id) + _ENTRY
        return self._ledger + varint_bytes(entry_id) + self._partition
