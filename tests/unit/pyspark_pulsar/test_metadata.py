"""The metadata of entries is parsed at a bounded cost."""

from __future__ import annotations

import pytest

from pyspark_pulsar.metadata import (
    PROPERTIES_MAX,
    PartError,
    entry_metadata,
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


def test_a_usual_class_tells_of_each_other_field() -> None:
    for number, value in ((4, EMPTY), (6, b""), (8, 0), (11, 1), (13, b""), (20, 0), (30, 0)):
        usual = usual_entry(metadata() + field(number, value))
        assert usual.WhichOneof("rest")
    usual = usual_entry(metadata(schema_version=b"1", replicate_to=["c"]))
    assert usual.WhichOneof("rest") is None
