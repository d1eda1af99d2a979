"""Entries that are chunks are found by their metadata."""

from __future__ import annotations

from headgate.wire.chunks import chunk_of
from headgate.wire.entry import build_entry
from headgate.wire.messages import MessageMetadata


def entry(**fields: object) -> bytes:
    metadata = MessageMetadata(producer_name="p", sequence_id=1, publish_time=2, **fields)
    return build_entry(metadata, b"payload")


def test_chunks_of_a_message_share_its_number() -> None:
    first, last = (
        chunk_of(entry(uuid="u", chunk_id=index, num_chunks_from_msg=2, total_chunk_msg_size=9))
        for index in range(2)
    )
    other = chunk_of(entry(uuid="v", chunk_id=1, num_chunks_from_msg=2))
    assert first is not None
    assert last is not None
    assert other is not None
    assert first.message == last.message != other.message
    assert (first.is_first, last.is_first) == (True, False)


def test_other_entries_are_no_chunks() -> None:
    assert chunk_of(entry()) is None
    assert chunk_of(entry(partition_key="\u0168\x01", ordering_key=b"\xe8\x01")) is None
    assert chunk_of(entry(uuid="u", chunk_id=0, num_chunks_from_msg=1)) is None
    assert chunk_of(b"") is None
    assert chunk_of(b"\x00\x00\x00\x03\xe8\x01\xff") is None
