"""What the acknowledged entries of each block of an acknowledgement set have together.

An acknowledgement set does not know how many messages and bytes an entry has; the index does, which
may be on the disk. A client can acknowledge millions of entries of which no two are neighbours, and
then move its cursor over all of them by one command. So who acknowledges an entry adds what it has
to the sums of its block, and who adds up what is acknowledged looks up the runs of few blocks.

Not all blocks have sums: none after a start until somebody has looked at its runs, and none that
holds the mark-delete position, to which most acknowledgements go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from headgate.base.ack_set import BLOCK_ORDINALS, AckSet


class Piece(NamedTuple):
    """A part of an acknowledgement set."""

    first: int
    stop: int
    sums: list[int] | None
    """How many of its entries are acknowledged, with how many messages and bytes; None if that is
    not known."""

    @property
    def is_block(self) -> bool:
        """Whether it is a whole block."""
        return self.stop - self.first == BLOCK_ORDINALS


def add_acked(acks: AckSet, ordinal: int, messages: int, size_bytes: int) -> None:
    """Add what an entry above the mark-delete position has that was acknowledged just now."""
    number = ordinal // BLOCK_ORDINALS
    sums = acks.sums.get(number)
    if sums is not None:
        sums[0] += 1
        sums[1] += messages
        sums[2] += size_bytes
    elif number > (acks.mark_delete + 1) // BLOCK_ORDINALS and acks.acked_in_block(number) == 1:
        acks.sums[number] = [1, messages, size_bytes]


def learn(acks: AckSet, piece: Piece, sums: list[int]) -> None:
    """Remember the sums of a piece, if it is a block."""
    if piece.is_block:
        acks.sums[piece.first // BLOCK_ORDINALS] = sums


def pieces_of(acks: AckSet, first: int, stop: int) -> Iterator[Piece]:
    """The pieces from ``first``, which is above the mark-delete position, to before ``stop`` in
    which entries may be acknowledged, ascending."""
    for number in acks.block_numbers(first, stop):
        begin = number * BLOCK_ORDINALS
        piece = Piece(max(begin, first), min(begin + BLOCK_ORDINALS, stop), None)
        sums = acks.sums.get(number)
        if sums is not None and piece.is_block and sums[0] == acks.acked_in_block(number):
            piece = piece._replace(sums=sums)
        yield piece
