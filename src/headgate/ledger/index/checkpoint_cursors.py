"""Collects cursors with many partly acknowledged entries for a checkpoint, piece by piece."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from headgate.ledger.index.checkpoint import CheckpointBuilder
from headgate.ledger.index.cursors import CursorState

PIECE_PARTS: Final = 256
"""Partly acknowledged entries that are encoded at once, and blocks of acknowledgements of all the
cursors of a slice: half a millisecond. A cursor may have a quarter of a million of the former."""


def add_in_pieces(
    builder: CheckpointBuilder, cursor: CursorState, stage_acks: Callable[[int], None]
) -> Iterator[None]:
    """Add a cursor with its acknowledgements; yields after each piece of them.

    ``stage_acks`` stages what changed in a cursor's set. It is called before the first piece and
    after the last: so all that was collected is in the log, and replay finds what was not.
    """
    stage_acks(cursor.cursor_id)
    acks = yield from cursor.ack_set.to_bytes_in_pieces(PIECE_PARTS)
    stage_acks(cursor.cursor_id)
    builder.add_cursor(cursor, acks)
