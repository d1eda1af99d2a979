"""The words in which clients and brokers say what is left of a batch.

Pulsar's ``ack_set`` is a bitmap of 64-bit words, lowest bit first: bit i is set if message i of the
batch is *not* acknowledged. Words are signed on the wire. Words at the end that are 0 may be left
out, as Java's ``BitSet.toLongArray`` does: what they say is acknowledged.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from headgate.base.errors import InputError

WORD_BITS: Final = 64
_WORD_BYTES = WORD_BITS // 8
_WORD_MASK = (1 << WORD_BITS) - 1


def acked_mask(words: Sequence[int], batch_size: int) -> int:
    """The mask of the messages that ``words`` leave out, as acknowledged, of a batch of that size:
    bit i is set if message i is acknowledged.

    Raises:
        InputError: a word is set for a message beyond the batch.
    """
    if len(words) == 1:
        left = words[0] & _WORD_MASK
    else:
        left = int.from_bytes(struct.pack(f"<{len(words)}q", *words), "little")
    if left >> batch_size:
        raise InputError(
            f"an acknowledgement leaves message {left.bit_length() - 1} of a batch of {batch_size}"
        )
    return left ^ ((1 << batch_size) - 1)


def words_of(left_mask: int) -> tuple[int, ...]:
    """The words that say what is left of a batch: bit i of the mask is set if message i is not
    acknowledged. None at the end is 0."""
    count = -(-left_mask.bit_length() // WORD_BITS)
    return struct.unpack(f"<{count}q", left_mask.to_bytes(count * _WORD_BYTES, "little"))
