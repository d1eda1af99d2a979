"""Finds the entries that are chunks of a message."""

from __future__ import annotations

from headgate.base.chunk import Chunk
from headgate.wire.entry import chunk_facts, locate
from headgate.wire.errors import RemoteProtocolError
from headgate.wire.metadata_head import head_of

_CHUNK_TAG = b"\xe8\x01"
"""The bytes before ``chunk_id`` (field 29, a varint) in the metadata."""


def chunk_of(body: bytes) -> Chunk | None:
    """The chunk that an entry is; None if it is a whole message, a batch, or unreadable.

    Costs 0.3 us for an entry that is none. Few of those have the bytes of the field in their
    metadata; for these, and for chunks, the parser decides.
    """
    try:
        _, _, start, end = locate(body)
        if body.find(_CHUNK_TAG, start, end) < 0:
            return None
        facts = chunk_facts(head_of(body))
    except RemoteProtocolError:
        return None
    if facts is None:
        return None
    return Chunk(hash(facts.uuid), is_first=facts.chunk_id == 0)
