"""Checks the message count of a SEND against its entry.

Limits, permits and statistics use the count in the SEND command, so that a broker need not parse
entries. A producer with too high a count would charge the limits of all others for years; one with
too low a count would evade them. The true count is in the entry's metadata, which is not encrypted
and which consumers use.
"""

from __future__ import annotations

from google.protobuf.message import DecodeError

from headgate.wire.delivery_time import DELAY_TAG, delay_ms_of
from headgate.wire.entry import MAGIC_CHECKSUM, locate
from headgate.wire.errors import RemoteProtocolError
from headgate.wire.metadata_head import START_BYTES, parse_head, unpack_start

BATCHED_MESSAGE_BYTES_MIN = 6
"""Least bytes of a message in a batch: the size of its metadata (4) and, in that, the size of its
payload (2)."""

_COUNT_TAG = 0x58
"""The byte before ``num_messages_in_batch`` (field 11, a varint) in the metadata."""


def check_message_count(claimed: int, body: bytes, batch_bytes_max: int) -> int:
    """Return if the entry ``body`` holds ``claimed`` messages. The result is the delay that it asks
    for in milliseconds, 0 for none, which this function reports because a second search would cost
    more.

    ``batch_bytes_max`` bounds the size of a compressed batch after decompression. Costs 0.3 us for
    a single message (0.07 of it for the delay), 0.5 us for a batch.

    Raises:
        RemoteProtocolError: the entry holds more or fewer messages, or cannot hold so many.
    """
    magic, metadata_bytes = unpack_start(body) if len(body) >= START_BYTES else (0, 0)
    if magic == MAGIC_CHECKSUM:
        start = START_BYTES
        end = start + metadata_bytes
    else:
        _, _, start, end = locate(body)
    # Few single messages have those bytes in their metadata; for these the parser decides.
    if (
        claimed == 1
        and body.find(_COUNT_TAG, start, end) < 0
        and body.find(DELAY_TAG, start, end) < 0
    ):
        return 0
    try:
        metadata = parse_head(body[start:end])
    except DecodeError as error:
        raise RemoteProtocolError(f"entry holds no valid message metadata: {error}") from error
    held = metadata.num_messages_in_batch  # 1 where there is none
    if held != claimed or held < 1:
        raise RemoteProtocolError(f"SEND of {claimed} messages whose entry holds {held}")
    room_bytes = batch_bytes_max if metadata.compression else len(body) - end
    # An empty batch of one message ends clients in C++.
    is_batch = metadata.HasField("num_messages_in_batch")
    if is_batch and held * BATCHED_MESSAGE_BYTES_MIN > room_bytes:
        raise RemoteProtocolError(f"a batch of {held} messages in {len(body) - end} bytes")
    return delay_ms_of(metadata)
