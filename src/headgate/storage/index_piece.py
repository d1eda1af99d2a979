"""What one job of a lane reads of the index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from headgate.base.clock import Clock
from headgate.base.units import NS_PER_MS
from headgate.ledger import BlockKey, CommitLog, FetchedBlock

PIECE_NS: Final = 5 * NS_PER_MS
"""How long one job reads blocks of the index. A look-up may need hundreds, and each takes as long
as the disk takes for a read: after this time it is the turn of others. A fast disk has given dozens
by then; with a fixed number of blocks, look-ups would wait for the loop as often while it is
busy."""

PIECE_BLOCKS: Final = 64
"""Blocks that one job reads, however fast the disk is."""


def fetch_piece(log: CommitLog, keys: Sequence[BlockKey], clock: Clock) -> list[FetchedBlock]:
    """Read the first of some blocks, as many as :data:`PIECE_NS` suffices for, and one at least.
    Blocks: for a lane."""
    end_ns = clock.monotonic_ns() + PIECE_NS
    return log.fetch_index(keys[:PIECE_BLOCKS], lambda: clock.monotonic_ns() >= end_ns)
