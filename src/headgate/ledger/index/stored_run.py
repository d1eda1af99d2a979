"""The sparse part of a run whose index lies in the blocks of a footer (see footer.py)."""

from __future__ import annotations

from typing import NamedTuple

from headgate.ledger.index.columns import Columns, TopicTotals
from headgate.ledger.index.index_block import BLOCK_ENTRIES, block_bytes


class StoredRun(NamedTuple):
    """What is known of a stored run without its blocks."""

    topic_number: int
    first: int
    """The first ordinal."""
    entries: int
    """Entries of the run."""
    segment: int
    """The segment whose footer has the blocks."""
    place: int
    """File offset of the first block."""
    sparse: Columns
    """One row for each block of the footer: the offset of its first record, and the values of the
    entry before the block."""
    row: int
    """The row of the first block."""
    after: TopicTotals
    """The topic's totals up to and with the run."""
    block_entries: int = BLOCK_ENTRIES
    """Entries of each block but the last."""

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

    def place_of(self, block: int) -> int:
        """The file offset of a block."""
        return self.place + block * block_bytes(self.block_entries)
