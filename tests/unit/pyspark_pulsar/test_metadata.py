"""The metadata of entries is parsed at a bounded cost."""

from __future__ import annotations

import pytest

from pyspark_pulsar.metadata import (
    PROPERTIES_MAX,
    PartError,
    entry_metadata,
    parse_usual_single,
    single_metadata,
    usual_entry,
)
from tests.unit.pyspark_pulsar.entry_bytes import field, metadata, pairs

EMPTY = field(1, b"") + field(2, b"")


def test_a_large_property_is_no_large_number_of_properties() -> None:
    text = '"' * 200_000  # the byte is the tag of a property, too
    found = entry_metadata(metadata(properties=pairs(("json", text))))
    assert [each.value for each in found.properties] == [text.encode()]
    lines = field(3, 0) + field(1, field(1, b"a") + field(2, b"\n" * 200_000))
    assert len(single_metadata(lines).properties) == 1


def test_many_properties_are_read_and_very_many_refused() -> None:
    one = field(4, EMPTY)
    found = entry_metadata(metadata() + one * 20_000 + b"\x21" + bytes(8))
    assert len(found.properties) == 20_000
    with pytest.raises(PartError, match="more than 100,000 fields"):
        entry_metadata(metadata() + one * PROPERTIES_MAX)
    with pytest.raises(PartError, match="more than 100,000 fields"):
        single_metadata(field(3, 0) + field(1, EMPTY) * PROPERTIES_MAX)


@pytest.mark.parametrize("rest", [b"\xff" * 11, b"\x23\x24", b"\x22\xff", b"\x80"])
def test_large_metadata_that_is_none(rest: bytes) -> None:
    with pytest.raises(PartError, match="no valid protobuf"):
        entry_metadata(metadata() + field(4, EMPTY) * 20_000 + rest)


def test_the_last_of_the_same_fields_counts() -> None:
    found = entry_metadata(metadata() + field(6, b"a") + field(3, 5) + field(6, b"b"))
    assert (found.partition_key, found.publish_time) == (b"b", 5)


def test_a_usual_class_tells_of_each_other_field_that_means_something() -> None:
    for number in (4, 6, 13):
        assert usual_entry(metadata() + field(number, b"")).WhichOneof("rest")
    for number in (1, 2):
        assert parse_usual_single(field(3, 0) + field(number, b"")).WhichOneof("rest")
    for number in (8, 11, 12, 20, 25, 27):
        assert usual_entry(metadata() + field(number, 0)).WhichOneof("rest")
    for number in (4, 5, 9):
        assert parse_usual_single(field(3, 0) + field(number, 0)).WhichOneof("rest")


def test_a_usual_class_ignores_what_means_nothing_alone() -> None:
    """Clients set the size also of what they do not compress, and schemas and their clusters."""
    usual = usual_entry(
        metadata(
            uncompressed_size=5,
            partition_key_b64_encoded=True,
            null_partition_key=True,
            uuid="p-7",
            chunk_id=1,
            total_chunk_msg_size=9,
            schema_version=b"1",
            replicate_to=["c"],
            highest_sequence_id=8,
        )
    )
    assert usual.WhichOneof("rest") is None
    single = parse_usual_single(field(3, 0) + field(6, 1) + field(8, 1) + field(10, 1))
    assert single.WhichOneof("rest") is None
