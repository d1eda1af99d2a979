"""What the broker reads of a message's metadata, and that its cost follows from the size alone."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from headgate.wire import metadata_head
from headgate.wire.entry import LENGTH, build_entry
from headgate.wire.errors import RemoteProtocolError
from headgate.wire.messages import MessageMetadata
from headgate.wire.metadata_head import (
    FIELDS_MAX,
    head_of,
    metadata_bytes_of,
    parse_head,
    properties_and_keys,
)

REQUIRED: dict[str, Any] = {"producer_name": "p", "sequence_id": 1, "publish_time": 2}


def entry_of(data: bytes) -> bytes:
    return LENGTH.pack(len(data)) + data + b"payload"


def test_nothing_in_a_head_has_objects_of_its_own() -> None:
    """Then the parser makes none, however many properties a client sends."""
    for field in metadata_head._Head.DESCRIPTOR.fields:
        assert field.message_type is None
        assert not field.is_repeated


texts = st.text(max_size=20)
numbers = st.integers(0, 2**63 - 1)


@given(
    st.fixed_dictionaries(
        {"producer_name": texts, "sequence_id": numbers, "publish_time": numbers},
        optional={
            "partition_key": texts,
            "compression": st.integers(0, 4),
            "uncompressed_size": st.integers(0, 2**32 - 1),
            "num_messages_in_batch": st.integers(-(2**31), 2**31 - 1),
            "event_time": numbers,
            "encryption_param": st.binary(max_size=20),
            "partition_key_b64_encoded": st.booleans(),
            "deliver_at_time": st.integers(-(2**63), 2**63 - 1),
            "highest_sequence_id": numbers,
            "uuid": texts,
            "num_chunks_from_msg": st.integers(0, 2**31 - 1),
            "total_chunk_msg_size": st.integers(0, 2**31 - 1),
            "chunk_id": st.integers(0, 2**31 - 1),
            "null_partition_key": st.booleans(),
        },
    ),
    st.lists(st.tuples(texts, texts), max_size=5),
    st.lists(texts, max_size=3),
)
def test_it_reads_what_the_whole_parser_reads(
    fields: dict[str, Any], properties: list[tuple[str, str]], keys: list[str]
) -> None:
    whole = MessageMetadata(**fields, schema_version=b"12345678", replicate_to=["a", "b"])
    for key, value in properties:
        whole.properties.add(key=key, value=value)
    for name in keys:
        whole.encryption_keys.add(key=name, value=b"sealed").metadata.add(key="k", value="v")
    body = build_entry(whole, b"payload")
    head: Any = head_of(body)
    for field in head.DESCRIPTOR.fields:
        if field.name != "encryption_keys":
            assert getattr(head, field.name) == getattr(whole, field.name)
            assert head.HasField(field.name) == whole.HasField(field.name)
    assert head.HasField("encryption_keys") == bool(keys)
    assert metadata_bytes_of(body) == whole.ByteSize()
    found = properties_and_keys(body)
    assert found.properties == tuple(properties)
    assert found.encryption_keys == tuple(k.SerializeToString() for k in whole.encryption_keys)


def test_a_code_that_the_protocol_does_not_have_is_none() -> None:
    data = MessageMetadata(**REQUIRED).SerializeToString() + b"\x40\x63"
    assert MessageMetadata.FromString(data).compression == 0
    assert parse_head(data).compression == 0


def test_of_very_many_properties_it_reads_the_first() -> None:
    data = MessageMetadata(**REQUIRED).SerializeToString()
    data += b"\x22\x06\x0a\x01a\x12\x01b" * 620_000
    assert len(properties_and_keys(entry_of(data)).properties) == FIELDS_MAX - len(REQUIRED)


def test_properties_that_are_no_text_are_shown_as_far_as_they_are() -> None:
    """A client in C++ may send any bytes; nobody could examine such a message."""
    data = MessageMetadata(**REQUIRED).SerializeToString() + b"\x22\x07\x0a\x02\xffa\x12\x01\xfe"
    assert properties_and_keys(entry_of(data)).properties == (("\ufffda", "\ufffd"),)


@pytest.mark.parametrize(
    "data",
    [
        b"\x22",
        b"\x22\x05\x0a",
        b"\x22\x02\x0a\x05",
        b"\x30" + b"\xff" * 12,
        b"\x22\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    ],
)
def test_invalid_metadata_is_refused(data: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        properties_and_keys(LENGTH.pack(len(data)) + data)


def test_values_of_other_wire_types_are_passed() -> None:
    data = b"\x79" + bytes(8) + b"\x7d" + bytes(4) + b"\x22\x06\x0a\x01a\x12\x01b"
    assert properties_and_keys(entry_of(data)).properties == (("a", "b"),)
    assert properties_and_keys(entry_of(b"\x7b\x7c" + data)).properties == ()


def test_a_head_needs_the_required_fields() -> None:
    with pytest.raises(RemoteProtocolError, match="required"):
        head_of(entry_of(b""))
    with pytest.raises(RemoteProtocolError, match="no valid"):
        head_of(entry_of(b"\x0a\x09"))
    with pytest.raises(DecodeError):
        parse_head(b"\x0a\x09")
