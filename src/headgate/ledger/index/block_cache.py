"""The blocks of stored indexes that are in memory, up to a bound of bytes.

Loop only, but for :meth:`BlockCache.fetch`. A block that is looked up and not in memory is read at
once: 4 KB, which blocks the loop for as long as the disk takes. Backlog reads avoid that: they
bring the blocks that they need with :meth:`BlockCache.fetch` on the read lane first.

A block that was not used since the last round of eviction goes first (second chance): a hit costs
one look-up in a dictionary and one mark.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from headgate.base.errors import CorruptionError, StorageError
from headgate.base.units import MIB
from headgate.ledger.format.records import segment_name
from headgate.ledger.index.columns import Columns, TopicTotals, cut_columns, shifted
from headgate.ledger.index.index_block import columns_bytes, decode_block
from headgate.ledger.index.rebuilt_block import rebuild_block
from headgate.ledger.index.stored_run import segment_of_file

logger = logging.getLogger("headgate.ledger")

_OBJECT_BYTES: Final = 720
"""What a block in memory takes beside the bytes of its columns: objects, key, dictionary."""

RECORDS_BYTES_MAX: Final = 64 * MIB
"""Most bytes of records that are read to rebuild one damaged block."""


class BlockKey(NamedTuple):
    """A stored block, or the part of it that a topic retains, and where it is."""

    topic_number: int
    first: int
    """The first ordinal of the part."""
    stop: int
    """One past its last ordinal."""
    file: int
    """The segment file with the footer; its id."""
    place: int
    """File offset of the block."""
    size_bytes: int
    """Most bytes that the block may have."""


class BlockPart(NamedTuple):
    """Entries of a stored block."""

    key: BlockKey
    first: int
    stop: int
    messages: int
    """Messages of the topic before the first entry of the key."""
    bytes_before: int
    """Bytes of the topic before that entry."""


class SegmentFiles(Protocol):
    """Reads segment files. Thread-safe."""

    def read(self, file: int, offset: int, size: int) -> bytes:
        """Bytes of a file; fewer only at its end. Raises :class:`StorageError`."""


class NoFiles:
    """No files at all, for a state of the log that is built apart."""

    def read(self, file: int, offset: int, size: int) -> bytes:
        """Raise :class:`StorageError`."""
        what = f"no {size} bytes at {offset} of file {file:x}"
        raise StorageError(what, retryable=False)


class Block:
    """A block in memory."""

    __slots__ = ("columns", "first", "is_used")

    def __init__(self, first: int, columns: Columns) -> None:
        self.first = first
        """The first ordinal in the columns."""
        self.columns = columns
        self.is_used = True


class BlockCache:
    """The blocks in memory of all topics of a log."""

    def __init__(self, files: SegmentFiles, size_bytes_max: int) -> None:
        self._files = files
        self._blocks: dict[tuple[int, int], Block] = {}
        self.size_bytes_max = size_bytes_max
        self.size_bytes = 0
        """What the blocks in memory take."""
        self.read_on_loop = 0
        """Blocks that a look-up on the loop had to read."""
        self.fetched = 0
        """Blocks that backlog reads brought."""
        self.rebuilt = 0
        """Damaged blocks that were rebuilt from the records."""
        self.lost = 0
        """Damaged blocks that could not be rebuilt in full."""

    def get(self, file: int, place: int) -> Block | None:
        """The block at a place of a file, if it is in memory."""
        found = self._blocks.get((file, place))
        if found is not None:
            found.is_used = True
        return found

    def put(self, key: BlockKey, block: Block) -> None:
        """Keep a block in memory."""
        name = (key.file, key.place)
        before = self._blocks.pop(name, None)
        if before is not None:
            self.size_bytes -= _size_of(before)
        self._blocks[name] = block
        self.size_bytes += _size_of(block)
        while self.size_bytes > self.size_bytes_max and len(self._blocks) > 1:
            oldest = next(iter(self._blocks))
            dropped = self._blocks.pop(oldest)
            if dropped.is_used and dropped is not block:
                dropped.is_used = False
                self._blocks[oldest] = dropped
            else:
                self.size_bytes -= _size_of(dropped)

    def read(self, key: BlockKey) -> Block:
        """Read a block at once. Raises :class:`CorruptionError` and :class:`StorageError`."""
        self.read_on_loop += 1
        block = self._read(key)
        self.put(key, block)
        return block

    def fetch(self, keys: Sequence[BlockKey]) -> list[tuple[BlockKey, Block]]:
        """Read blocks that can be read. For a reader thread; pass the answer to :meth:`keep`."""
        found = []
        for key in keys:
            try:
                found.append((key, self._read(key)))
            except (CorruptionError, StorageError):
                continue  # the look-up reports it
        return found

    def resolve(self, part: Columns | BlockPart) -> Columns:
        """The columns of a part that may not be in memory. For any thread.

        Raises :class:`CorruptionError` and :class:`StorageError`.
        """
        if isinstance(part, Columns):
            return part
        key = part.key
        block = self._read(key)
        columns, at = block.columns, key.first - block.first
        found = cut_columns(columns, part.first - block.first, part.stop - block.first)
        messages = part.messages - columns.messages[at]
        return shifted(found, messages, part.bytes_before - columns.sizes[at])

    def keep(self, fetched: Sequence[tuple[BlockKey, Block]]) -> None:
        """Keep what :meth:`fetch` brought."""
        self.fetched += len(fetched)
        for key, block in fetched:
            self.put(key, block)

    def rebuild(
        self,
        key: BlockKey,
        extent: range,
        before: TopicTotals,
        after: TopicTotals,
        error: Exception,
    ) -> Columns:
        """The index of a damaged block from the records in a range of offsets; see
        :func:`rebuild_block`. Reads at most :data:`RECORDS_BYTES_MAX`."""
        try:
            size = min(len(extent), RECORDS_BYTES_MAX)
            data = self._files.read(key.file, extent.start, size)
        except StorageError:
            data = b""
        number, first, stop = key[:3]
        columns, is_whole = rebuild_block(data, extent.start, number, first, stop, before, after)
        self.rebuilt += is_whole
        self.lost += not is_whole
        logger.error(
            "the index of topic number %d, entries %d to %d, in %s is unreadable (%s): %s",
            number,
            first,
            stop - 1,
            segment_name(segment_of_file(key.file)),
            error,
            "it was rebuilt from the records"
            if is_whole
            else "the records do not tell all of it, and the rest is refused as damaged",
        )
        return columns

    def _read(self, key: BlockKey) -> Block:
        data = self._files.read(key.file, key.place, key.size_bytes)
        first, columns = decode_block(data, key.topic_number, key.first, key.stop)
        return Block(first, columns)


def _size_of(block: Block) -> int:
    return columns_bytes(len(block.columns.offsets)) + _OBJECT_BYTES
