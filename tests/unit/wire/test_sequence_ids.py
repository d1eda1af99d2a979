"""The producer and the sequence ids of an entry, by the short way and by the parser."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.wire.entry import build_entry, crc32c
from headgate.wire.messages import MessageMetadata
from headgate.wire.sequence_ids import entry_sequence, name_test


def entry(name: str, sequence_id: int, **fields: object) -> bytes:
    metadata = MessageMetadata(
        producer_name=name, sequence_id=sequence_id % (1 << 64), publish_time=1, **fields
    )
    return build_entry(metadata, b"payload")


@given(
    st.text(max_size=200),
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.one_of(st.none(), st.integers(0, (1 << 63) - 1)),
    st.binary(max_size=30),
)
def test_name_and_ids_are_those_of_the_metadata(
    name: str, first: int, highest: int | None, key: bytes
) -> None:
    fields: dict[str, object] = {"ordering_key": key}
    if highest is not None:
        fields["highest_sequence_id"] = highest
    found = entry_sequence(entry(name, first, **fields))
    # Without a highest id the parser gives 0, as for Pulsar.
    assert found is not None
    assert found[:2] == (name, first)
    assert found[2] in (first, max(first, highest or 0))
    assert highest is None or found[2] == max(first, highest)


@pytest.mark.parametrize("value", [0, 1, 127, 128, 300, (1 << 28) - 1, 1 << 35, (1 << 62) + 5])
def test_ids_of_every_length_are_read(value: int) -> None:
    assert entry_sequence(entry("producer", value)) == ("producer", value, value)


def test_of_a_message_in_chunks_the_last_one_counts() -> None:
    chunk = {"num_chunks_from_msg": 3, "uuid": "u"}
    assert entry_sequence(entry("p", 5, chunk_id=0, **chunk)) is None
    assert entry_sequence(entry("p", 5, chunk_id=1, **chunk)) is None
    assert entry_sequence(entry("p", 5, chunk_id=2, **chunk)) == ("p", 5, 5)
    assert entry_sequence(entry("p", 5, chunk_id=0, num_chunks_from_msg=1)) == ("p", 5, 5)


def test_an_entry_without_a_checksum_is_read() -> None:
    metadata = MessageMetadata(producer_name="p", sequence_id=9, publish_time=1)
    assert entry_sequence(build_entry(metadata, b"", checksum=False)) == ("p", 9, 9)


@given(st.binary(max_size=60))
def test_other_bytes_raise_nothing(body: bytes) -> None:
    entry_sequence(body)
    entry_sequence(b"\x0e\x01" + body)


def test_bytes_that_are_no_entry_have_none() -> None:
    assert entry_sequence(b"") is None
    assert entry_sequence(b"\x00\x00\x00\x02\xff\xff") is None


@given(st.text(max_size=150), st.text(max_size=150), st.integers(0, 1 << 40))
def test_the_quick_test_knows_a_producer_by_its_entries(name: str, other: str, at: int) -> None:
    names = name_test(name)
    is_long = len(name.encode()) > 127
    assert names(entry(name, at)) is not is_long
    assert names(entry(other, at)) is (other == name and not is_long)
    assert not names(b"")
    metadata = MessageMetadata(producer_name=name, sequence_id=9, publish_time=1)
    assert not names(build_entry(metadata, b"", checksum=False))


def test_an_entry_cannot_name_a_second_producer_for_a_start_to_find() -> None:
    """A start must not count an entry for another producer than the one that was tested."""
    first = MessageMetadata(producer_name="own", sequence_id=1, publish_time=1)
    second = MessageMetadata(producer_name="other", sequence_id=1, publish_time=1)
    second.highest_sequence_id = 1 << 60
    encoded = first.SerializeToString() + second.SerializeToString()
    covered = len(encoded).to_bytes(4) + encoded
    forged = b"\x0e\x01" + crc32c(covered).to_bytes(4) + covered
    assert name_test("own")(forged)
    assert entry_sequence(forged) is None


def test_a_name_that_is_no_text_is_none() -> None:
    """The parser returns bytes in the place of such a text."""
    forged = entry("ab", 5).replace(b"ab", b"\xffb")
    assert entry_sequence(forged) is None
    assert not name_test("ab")(forged)


def test_a_number_that_does_not_end_takes_no_longer_than_others() -> None:
    """It took the square of its size: of 5 MB, half an hour."""
    metadata = b"\x0a\x01p\x10"
    covered = len(metadata).to_bytes(4) + metadata + b"\xff" * 5_000_000
    forged = b"\x0e\x01" + crc32c(covered).to_bytes(4) + covered
    assert name_test("p")(forged)
    assert entry_sequence(forged) is None
