"""The sparse part of a run whose index lies in the blocks of a footer (see footer.py)."""

from __future__ import annotations

from typing import Final, NamedTuple

from headgate.ledger.index.columns import Columns, TopicTotals
from headgate.ledger.index.index_block import block_bytes

_VERSION_BITS: Final = 20
_VERSION_MASK = (1 << _VERSION_BITS) - 1


def file_id(segment: int, version: int) -> int:
    """One number for a file of a segment; ``version`` is how often that was replaced since the
    start."""
    return segment << _VERSION_BITS | version & _VERSION_MASK


def segment_of_file(file: int) -> int:
    """The segment of a :func:`file_id`."""
    return file >> _VERSION_BITS


def version_of_file(file: int) -> int:
    """The version in a :func:`file_id`."""
    return file & _VERSION_MASK


class StoredRun(NamedTuple):
    """What is known of a stored run without its blocks."""

    topic_number: int
    first: int
    """The first ordinal."""
    entries: int
    """Entries of the run."""
    file: int
    """The :func:`file_id` of the file whose footer has the blocks."""
    place: int
    """File offset of the first block."""
    sparse: Columns
    """One row for each block of the footer: the offset of its first record, and the values of the
    entry before the block."""
    row: int
    """The row of the first block."""
    after: TopicTotals
    """The topic's totals up to and with the run."""
    block_entries: int
    """Entries of each block but the last."""

    @property
    def segment(self) -> int:
        """The segment of the file."""
        return segment_of_file(self.file)

    @property
    def stop(self) -> int:
        """One past the last ordinal."""
        return self.first + self.entries

    @property
    def blocks(self) -> int:
        """The number of blocks."""
        return -(-self.entries // self.block_entries)

    def first_of(self, block: int) -> int:
        """The first ordinal of a block."""
        return self.first + block * self.block_entries

    def count_of(self, block: int) -> int:
        """The entries of a block."""
        return min(self.block_entries, self.entries - block * self.block_entries)

    def totals_before(self, block: int) -> TopicTotals:
        """The topic's totals before a block, or behind the last one."""
        if block == self.blocks:
            return self.after
        row, (_, received, lags, messages, sizes) = self.row + block, self.sparse
        return TopicTotals(messages[row], sizes[row], received[row], lags[row])

    def place_of(self, block: int) -> int:
        """The file offset of a block."""
        return self.place + block * block_bytes(self.block_entries)

    def alone(self) -> StoredRun:
        """The same run with its own rows only: the runs of a footer have one table of rows
        together, and whoever keeps or sends one of them keeps all of it."""
        rows = slice(self.row, self.row + self.blocks)
        return self._replace(sparse=Columns(*(column[rows] for column in self.sparse)), row=0)
