"""Ids: unsigned on the wire, signed in meaning.

Pulsar declares ledger ids, entry ids and request ids as ``uint64`` but stores Java longs in
them, so -1 travels as 2**64 - 1. Inside Headgate they are signed. Producer, consumer and
request ids chosen by a client are opaque: they are echoed exactly as they came, unsigned.
"""

from __future__ import annotations

from headgate.base.positions import Position
from headgate.base.units import INT64_MAX, UINT64_MASK
from headgate.wire.messages import MessageIdData

NO_REQUEST: int = UINT64_MASK
"""The request id of a command that a broker sends on its own account: -1, as it travels."""


def to_signed(value: int) -> int:
    """Read a ``uint64`` field as the signed 64-bit number that was put into it."""
    return value - (UINT64_MASK + 1) if value > INT64_MAX else value


def to_unsigned(value: int) -> int:
    """Write a signed 64-bit number into a ``uint64`` field."""
    return value & UINT64_MASK


def position_of(message_id: MessageIdData) -> Position:
    """The entry that ``message_id`` names, with both ids signed."""
    return Position(to_signed(message_id.ledgerId), to_signed(message_id.entryId))


def message_id_of(
    position: Position, *, partition: int = -1, batch_index: int = -1
) -> MessageIdData:
    """The message id of an entry (``batch_index`` -1) or of one message of a batch.

    ``partition`` is the topic's place in its partitioned topic, -1 for a topic of its own.
    """
    message_id = MessageIdData(
        ledgerId=to_unsigned(position.ledger_id), entryId=to_unsigned(position.entry_id)
    )
    if partition >= 0:
        message_id.partition = partition
    if batch_index >= 0:
        message_id.batch_index = batch_index
    return message_id
