"""Reads when an entry is to be delivered, without the protobuf parser where it is not delayed."""

from __future__ import annotations

from google.protobuf.message import DecodeError

from headgate.wire.entry import locate
from headgate.wire.errors import RemoteProtocolError
from headgate.wire.messages import MessageMetadata
from headgate.wire.metadata_head import parse_head

DELAY_TAG = b"\x98\x01"
"""The bytes before ``deliver_at_time`` (field 19, a varint) in the metadata of an entry."""


def due_time_ms_of(body: bytes) -> int:
    """When a stored entry is to be delivered, in milliseconds since 1970; 0 if it is not delayed.

    An entry whose time is not behind its publish time, both by the producer's clock, is not
    delayed. Raises nothing: bytes that are not an entry are not delayed. Costs 0.3 us; 2 us for an
    entry that is delayed, and for the few others whose metadata holds the bytes of the tag.
    """
    try:
        _, _, start, end = locate(body)
        if body.find(DELAY_TAG, start, end) < 0:
            return 0
        metadata = parse_head(body[start:end])
    except (RemoteProtocolError, DecodeError):
        return 0
    return metadata.deliver_at_time if delay_ms_of(metadata) else 0


def delay_ms_of(metadata: MessageMetadata) -> int:
    """How long after its publication a message is to be delivered, both by the producer's clock; 0
    if it is not delayed."""
    if not metadata.HasField("deliver_at_time"):
        return 0
    return max(metadata.deliver_at_time - metadata.publish_time, 0)
