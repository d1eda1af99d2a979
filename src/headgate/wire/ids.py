"""Ids: unsigned on the wire, signed in meaning.

Pulsar declares ledger ids, entry ids and request ids as ``uint64`` but stores Java longs in them,
so
-1 travels as 2**64 - 1. Headgate uses them signed. Producer, consumer and request ids are the
client's: the broker echoes them unchanged, as unsigned numbers.
"""

from __future__ import annotations

from headgate.base.positions import Position
from headgate.base.units import INT64_MAX, UINT64_MASK
from headgate.wire.messages import MessageIdData

NO_REQUEST: int = UINT64_MASK
"""The request id of a command that a broker sends without a request: -1 on the wire."""


def to_signed(value: int) -> int:
    """The signed number in a ``uint64`` field."""
    return value - (UINT64_MASK + 1) if value > INT64_MAX else value


def to_unsigned(value: int) -> int:
    """A signed 64-bit number as the value of a ``uint64`` field."""
    return value & UINT64_MASK


def position_of(message_id: MessageIdData) -> Position:
    """The position in a message id, both ids signed."""
    return Position(to_signed(message_id.ledgerId), to_signed(message_id.entryId))


def message_id_of(
    position: Position, *, partition: int = -1, batch_index: int = -1
) -> MessageIdData:
    """The message id of an entry (``batch_index`` -1) or of one message of a batch.

    ``partition`` is the index of the partition, -1 for an unpartitioned topic.
    """
    message_id = MessageIdData(
        ledgerId=to_unsigned(position.ledger_id), entryId=to_unsigned(position.entry_id)
    )
    if partition >= 0:
        message_id.partition = partition
    if batch_index >= 0:
        message_id.batch_index = batch_index
    return message_id
