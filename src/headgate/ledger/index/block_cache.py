"""The blocks of stored indexes that are in memory: the least recently used go first.

Loop only, but for :meth:`BlockCache.fetch` and :meth:`BlockCache.resolve`, which read from the disk
and belong on another thread. On the loop a look-up whose block is missing raises
:class:`BlockMissingError` within :meth:`BlockCache.without_reading`; its owner fetches the block on
the read lane and looks up again. Elsewhere (a start, and tools) a look-up reads its block at once.

Beside the blocks the cache remembers the totals of topics before single ordinals that were looked
up, at a tenth of a block's size. Statistics look up the same few ordinals of a cursor again and
again, long after its block is gone.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple, Protocol, TypeVar
from weakref import WeakValueDictionary

from headgate.base.errors import CorruptionError, StorageError
from headgate.base.units import MIB
from headgate.ledger.format.records import segment_name
from headgate.ledger.index.columns import Columns, TopicTotals, cut_columns, shifted
from headgate.ledger.index.index_block import BLOCK_ENTRIES, columns_bytes, decode_block
from headgate.ledger.index.rebuilt_block import rebuild_block
from headgate.ledger.index.stored_run import segment_of_file

_OBJECT_BYTES: Final = 720
"""What a block in memory takes beside the bytes of its columns: objects, key, dictionary."""
_TOTALS_BYTES: Final = 400
"""What remembered totals take: their numbers, their key, and the place in the dictionary."""
_TOTALS_PART: Final = 8
"""Remembered totals take at most the size of the cache divided by this."""

RECORDS_BYTES_MAX: Final = 64 * MIB
"""Most bytes of records that are read to rebuild one damaged block."""

T = TypeVar("T")

logger = logging.getLogger("headgate.ledger")


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
    records: range
    """Offsets of the file between which the records of its entries lie."""
    before: TopicTotals
    """The topic's totals before the part."""
    after: TopicTotals
    """The topic's totals behind it."""


class BlockPart(NamedTuple):
    """Entries of a stored block."""

    key: BlockKey
    first: int
    stop: int


class BlockMissingError(Exception):
    """A look-up needs a block that is not in memory, and may not read it."""

    def __init__(self, keys: Sequence[BlockKey]) -> None:
        super().__init__(f"{len(keys)} blocks of the index are not in memory")
        self.keys = keys


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


class BlockOwner(Protocol):
    """The stored index of one topic, as far as the cache needs it."""

    def pin(self, key: BlockKey, block: Block) -> bool:
        """Keep a block that was rebuilt; False if the topic has no such block any more."""


class Block:
    """A block in memory."""

    __slots__ = ("__weakref__", "columns", "first")

    def __init__(self, first: int, columns: Columns) -> None:
        self.first = first
        """The first ordinal in the columns."""
        self.columns = columns

    @property
    def size_bytes(self) -> int:
        """What it takes in memory."""
        return columns_bytes(len(self.columns.offsets)) + _OBJECT_BYTES


class FetchedBlock(NamedTuple):
    """What a read of one block brought."""

    key: BlockKey
    block: Block | None
    """None if it could not be read; then ``error`` says why."""
    error: StorageError | CorruptionError | None
    """Why the block was not read as it was stored; None if it was."""
    is_whole: bool = True
    """Whether a block that was rebuilt from the records has all entries."""


class BlockCache:
    """The blocks in memory of all topics of a log."""

    def __init__(self, files: SegmentFiles, size_bytes_max: int) -> None:
        self._files = files
        self._blocks: OrderedDict[tuple[int, int], Block] = OrderedDict()
        self._in_use: WeakValueDictionary[tuple[int, int], Block] = WeakValueDictionary()
        """Blocks that somebody holds, also those that the cache has dropped."""
        self._totals: OrderedDict[tuple[int, int], TopicTotals] = OrderedDict()
        self._may_read = True
        self._has_totals = False
        self.size_bytes_max = size_bytes_max
        self._blocks_bytes = 0
        self.hits = 0
        """Look-ups that found their block in memory."""
        self.misses = 0
        """Blocks that were read because a look-up needs them, or soon will."""
        self.read_at_once = 0
        """Blocks that a look-up read itself, on the thread that it ran on."""
        self.rebuilt = 0
        """Damaged blocks that were rebuilt from the records."""
        self.lost = 0
        """Damaged blocks that could not be rebuilt in full."""

    @property
    def size_bytes(self) -> int:
        """What blocks and remembered totals take."""
        return self._blocks_bytes + _TOTALS_BYTES * len(self._totals)

    @property
    def blocks_max(self) -> int:
        """How many whole blocks have room."""
        return self.size_bytes_max // (columns_bytes(BLOCK_ENTRIES) + _OBJECT_BYTES)

    # Blocks ---------------------------------------------------------------------------------

    def get(self, file: int, place: int) -> Block | None:
        """The block at a place of a file, if it is in memory."""
        name = (file, place)
        found = self._blocks.get(name)
        if found is not None:
            self._blocks.move_to_end(name)
        else:
            found = self._in_use.get(name)
        self.hits += found is not None
        return found

    def has(self, file: int, place: int) -> bool:
        """Whether the block at a place of a file is in memory. It counts as no use."""
        return (file, place) in self._blocks or (file, place) in self._in_use

    def put(self, key: BlockKey, block: Block) -> None:
        """Keep a block in memory."""
        name = (key.file, key.place)
        before = self._blocks.pop(name, None)
        if before is not None:
            self._blocks_bytes -= before.size_bytes
        self._blocks[name] = self._in_use[name] = block
        self._blocks_bytes += block.size_bytes
        self._shrink()

    def _shrink(self) -> None:
        while self.size_bytes > self.size_bytes_max and len(self._blocks) > 1:
            _, dropped = self._blocks.popitem(last=False)
            self._blocks_bytes -= dropped.size_bytes

    def keep(self, fetched: FetchedBlock, owner: BlockOwner | None) -> None:
        """Keep a block that was read. One that had to be rebuilt is kept by its topic, whose
        stored index is ``owner``; None if the topic is gone."""
        key, block, error, is_whole = fetched
        self.misses += 1
        if block is None or (isinstance(error, StorageError) and not is_whole):
            return  # the disk may answer the next time
        if error is None:
            self.put(key, block)
        elif owner is not None and owner.pin(key, block):
            self.rebuilt += is_whole
            self.lost += not is_whole
            logger.error(
                "the index of topic number %d, entries %d to %d, in %s is unreadable (%s): %s",
                key.topic_number,
                key.first,
                key.stop - 1,
                segment_name(segment_of_file(key.file)),
                error,
                "it was rebuilt from the records"
                if is_whole
                else "the records do not tell all of it, and the rest is refused as damaged",
            )

    def clear(self) -> None:
        """Drop all blocks and remembered totals."""
        self._blocks.clear()
        self._totals.clear()
        self._blocks_bytes = 0

    # Totals ---------------------------------------------------------------------------------

    def known_totals(self, topic_number: int, ordinal: int) -> TopicTotals | None:
        """The totals of a topic before an ordinal, if they were looked up not long ago."""
        name = (topic_number, ordinal)
        found = self._totals.get(name)
        if found is not None:
            self._totals.move_to_end(name)
        return found

    def remember_totals(self, topic_number: int, ordinal: int, totals: TopicTotals) -> None:
        """Remember the totals of a topic before an ordinal."""
        if not self._has_totals:
            return
        self._totals[topic_number, ordinal] = totals
        if len(self._totals) * _TOTALS_BYTES * _TOTALS_PART > self.size_bytes_max:
            self._totals.popitem(last=False)
        self._shrink()

    def started(self) -> None:
        """The start is over: from now on no totals of stored entries change, so that they are
        worth remembering, and reads are counted."""
        self._has_totals = True
        self.hits = self.misses = self.read_at_once = 0

    # Reading --------------------------------------------------------------------------------

    @contextmanager
    def without_reading(self) -> Iterator[None]:
        """Within it a look-up whose block is missing raises :class:`BlockMissingError`."""
        before, self._may_read = self._may_read, False
        try:
            yield
        finally:
            self._may_read = before

    def load(self, key: BlockKey) -> FetchedBlock:
        """Read a missing block at once. Raises :class:`BlockMissingError` if that is not allowed.

        A block that nothing can be read of comes as one of lost entries; :meth:`keep` keeps it only
        if the disk answered, and what it answered is damaged.
        """
        if not self._may_read:
            raise BlockMissingError([key])
        self.read_at_once += 1
        return self._fetch(key, is_last_try=True)

    def fetch(
        self, keys: Sequence[BlockKey], is_enough: Callable[[], bool] | None = None
    ) -> list[FetchedBlock]:
        """Read blocks, or rebuild damaged ones from the records: all, or the first ones up to where
        ``is_enough`` says so. Blocks: for a reader thread; the loop passes the answer to
        :meth:`headgate.ledger.CommitLog.keep_index`."""
        fetched: list[FetchedBlock] = []
        for key in keys:
            fetched.append(self._fetch(key))
            if is_enough is not None and is_enough():
                break
        return fetched

    def _fetch(self, key: BlockKey, *, is_last_try: bool = False) -> FetchedBlock:
        try:
            return FetchedBlock(key, self._read(key), None)
        except (CorruptionError, StorageError) as caught:
            error = caught
        try:
            size = min(len(key.records), RECORDS_BYTES_MAX)
            data = self._files.read(key.file, key.records.start, size)
        except StorageError as caught:
            data = b""
            error = caught if isinstance(error, CorruptionError) else error
        number, first, stop = key[:3]
        begin = key.records.start
        columns, is_whole = rebuild_block(data, begin, number, first, stop, key.before, key.after)
        if isinstance(error, StorageError) and not is_whole and not is_last_try:
            return FetchedBlock(key, None, error)  # the disk may answer the next time
        return FetchedBlock(key, Block(first, columns), error, is_whole)

    def resolve(self, part: Columns | BlockPart) -> Columns:
        """The columns of a part that may not be in memory. Blocks; for any thread.

        Raises :class:`CorruptionError` and :class:`StorageError`.
        """
        if isinstance(part, Columns):
            return part
        key = part.key
        block = self._read(key)
        columns, at = block.columns, key.first - block.first
        found = cut_columns(columns, part.first - block.first, part.stop - block.first)
        messages = key.before.messages - columns.messages[at]
        return shifted(found, messages, key.before.size_bytes - columns.sizes[at])

    def _read(self, key: BlockKey) -> Block:
        data = self._files.read(key.file, key.place, key.size_bytes)
        first, columns = decode_block(data, key.topic_number, key.first, key.stop)
        return Block(first, columns)

    def look_up(self, action: Callable[[], T]) -> T:
        """What ``action`` returns, without reading a block.

        Raises :class:`BlockMissingError` if it needs one; it must then be repeated.
        """
        with self.without_reading():
            return action()
