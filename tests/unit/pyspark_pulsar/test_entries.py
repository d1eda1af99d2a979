"""Entries that producers send are taken apart, whatever they send."""

from __future__ import annotations

import time
import tracemalloc
from dataclasses import replace
from itertools import chain
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_pulsar.batches import Messages
from pyspark_pulsar.entries import ChunkPart, Entry, Kind, assembled, parse_entry
from tests.unit.pyspark_pulsar.entry_bytes import (
    BYTES_MAX,
    PUBLISHED_MS,
    batch,
    body,
    compressed,
    field,
    metadata,
    pairs,
    part,
    with_broker_metadata,
)

CHUNK = {"uuid": "p-7", "num_chunks_from_msg": 3, "total_chunk_msg_size": 9, "chunk_id": 0}


def parsed(entry: bytes) -> Entry:
    return parse_entry(entry, BYTES_MAX)


def only(entry: Entry) -> Messages:
    """All messages of an entry, which come in one portion."""
    assert (entry.kind, entry.why) == (Kind.MESSAGES, "")
    (messages,) = entry.portions(1_000)
    return messages


def values(entry: Entry, rows_max: int = 1_000) -> list[bytes | None]:
    return list(chain.from_iterable(each.values for each in entry.portions(rows_max)))


def why(entry: Entry) -> str:
    """What is wrong with an entry, of which no message is given."""
    assert entry.kind is Kind.MALFORMED
    assert entry.why
    assert list(entry.portions(10)) == []
    return entry.why


def test_a_plain_message() -> None:
    entry = parsed(body(metadata(), b"value"))
    assert only(entry) == Messages([b"value"], [None], [None], [[]], [-1])
    assert (entry.messages_claimed, entry.publish_time_ms) == (1, PUBLISHED_MS)
    assert (entry.batch_size, entry.chunk) == (0, None)


@pytest.mark.parametrize("checksum", [True, False])
def test_the_parts_before_the_metadata_may_be_absent(checksum: bool) -> None:
    entry = body(metadata(), b"value", checksum=checksum)
    assert only(parsed(entry)).values == [b"value"]
    assert only(parsed(with_broker_metadata(entry))).values == [b"value"]
    assert only(parse_entry(memoryview(entry), BYTES_MAX)).values == [b"value"]


def test_the_first_message_of_a_producer_and_an_empty_one() -> None:
    assert only(parsed(body(metadata(sequence_id=0), b"v"))).values == [b"v"]
    assert only(parsed(body(metadata(producer_name=""), b""))).values == [b""]
    assert parsed(body(metadata(publish_time=0), b"")).publish_time_ms == 0


def test_all_fields_of_a_message() -> None:
    found = metadata(
        partition_key="a2V5",
        partition_key_b64_encoded=True,
        event_time=5,
        properties=pairs(("a", "1"), ("b", "2"), ("a", "3")),
        null_value=True,
    )
    expected = Messages([None], [b"key"], [5], [[("a", "3"), ("b", "2")]], [-1])
    assert only(parsed(body(found, b""))) == expected


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ({}, None),
        ({"partition_key": ""}, b""),
        ({"partition_key": "äö"}, "äö".encode()),
        ({"partition_key": "a2V5"}, b"a2V5"),
        ({"partition_key": "", "partition_key_b64_encoded": True}, b""),
        ({"partition_key": "a2V", "partition_key_b64_encoded": True}, b"a2V"),
        ({"partition_key": "a\n2V5", "partition_key_b64_encoded": True}, b"a\n2V5"),
        ({"partition_key": "a2V5", "null_partition_key": True}, None),
        ({"null_partition_key": True}, None),
    ],
)
def test_keys(fields: dict[str, Any], key: bytes | None) -> None:
    assert only(parsed(body(metadata(**fields), b"v"))).keys == [key]
    assert only(parsed(batch([part(b"v", **fields)]))).keys == [key]


def test_texts_that_are_no_utf_8() -> None:
    no_text = field(1, b"\xff") + field(2, b"value")
    fields = metadata() + field(1, b"\xff") + field(6, b"\xfe") + field(4, no_text)
    messages = only(parsed(body(fields, b"v")))
    assert messages == Messages([b"v"], [b"\xfe"], [None], [None], [-1])


def test_a_batch() -> None:
    parts = [
        part(b"plain", sequence_id=1),
        part(b"", null_value=True, event_time=9),
        part(b"x", compacted_out=True),
        part(b"", partition_key="k", properties=pairs(("a", "b"))),
        part(b"last"),
    ]
    entry = parsed(batch(parts))
    assert only(entry) == Messages(
        [b"plain", None, b"", b"last"],
        [None, None, b"k", None],
        [None, 9, None, None],
        [[], [], [("a", "b")], []],
        [0, 1, 3, 4],
    )
    assert (entry.messages_claimed, entry.batch_size, entry.publish_time_ms) == (5, 5, PUBLISHED_MS)


def test_a_batch_of_usual_messages_comes_in_portions() -> None:
    entry = parsed(batch(part(b"%d" % index, sequence_id=index) for index in range(10)))
    first, second = entry.portions(6)
    assert first.values == [b"0", b"1", b"2", b"3", b"4", b"5"]
    assert first.keys == first.event_times_ms == [None] * 6
    assert first.properties == [[]] * 6
    assert (first.batch_indexes, second.batch_indexes) == (range(6), range(6, 10))
    assert second.values == [b"6", b"7", b"8", b"9"]


def test_a_batch_without_a_message_that_is_left() -> None:
    entry = parsed(batch([part(b"x", compacted_out=True)] * 3))
    assert (entry.kind, entry.messages_claimed) == (Kind.MESSAGES, 3)
    assert list(entry.portions(10)) == []


def test_a_large_batch_is_checked_before_a_message_is_given() -> None:
    parts = [part(b"%d" % index) for index in range(25_001)]
    entry = parsed(batch(parts))
    assert values(entry, 4_000) == [b"%d" % index for index in range(25_001)]
    portions = list(entry.portions(4_000))
    assert [len(each) for each in portions] == [4_000] * 6 + [1_001]
    assert list(portions[-1].batch_indexes) == list(range(24_000, 25_001))
    assert "truncated" in why(parsed(batch([*parts[:-1], part(b"", payload_size=-1)[:-1]])))
    assert "bytes behind" in why(parsed(batch(parts, 25_000)))


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_compressed_messages(codec: int) -> None:
    fields = {"compression": codec, "uncompressed_size": 3_000}
    whole = compressed(b"abc" * 1_000, codec)
    assert only(parsed(body(metadata(**fields), whole))).values == [b"abc" * 1_000]
    parts = [part(b"x" * 500, partition_key="k")] * 40
    together = b"".join(parts)
    fields = {"compression": codec, "uncompressed_size": len(together)}
    found = metadata(num_messages_in_batch=40, **fields)
    assert values(parsed(body(found, compressed(together, codec)))) == [b"x" * 500] * 40
    nothing = compressed(b"", codec)
    assert only(parsed(body(metadata(compression=codec), nothing))).values == [b""]


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_compressed_messages_that_are_wrong(codec: int) -> None:
    whole = compressed(bytes(3_000), codec)
    for payload, size in (
        (whole, 2_999),
        (whole, 3_001),
        (whole, 0),
        (whole, 1 << 31),
        (whole[:-1], 3_000),
        (whole + b"x", 3_000),
        (b"", 3_000),
        (b"garbage", 3_000),
    ):
        found = metadata(compression=codec, uncompressed_size=size, num_messages_in_batch=7)
        entry = parsed(body(found, payload))
        assert why(entry)
        assert (entry.messages_claimed, entry.publish_time_ms) == (7, PUBLISHED_MS)


def test_unknown_compression() -> None:
    for codec in (5, 99, (1 << 64) - 1):
        assert "unknown" in why(parsed(body(metadata() + field(8, codec), b"v")))


def test_markers_and_encrypted_entries() -> None:
    marker = parsed(body(metadata() + field(20, 21) + field(8, 99), b"garbage"))
    assert (marker.kind, marker.messages_claimed) == (Kind.MARKER, 1)
    for key in (b"", b"garbage"):
        found = metadata(num_messages_in_batch=40, **CHUNK) + field(13, key)
        entry = parsed(body(found, b"garbage"))
        assert (entry.kind, entry.messages_claimed) == (Kind.ENCRYPTED, 40)
        assert list(entry.portions(1)) == []


@pytest.mark.parametrize(
    "more",
    [field(4, b"\xff"), field(6, b'"' * 16_385) + b"\x10\0" * 100_001],
    ids=["a property that is none", "very many fields"],
)
def test_brokers_count_the_messages_of_metadata_that_is_wrong_elsewhere(more: bytes) -> None:
    entry = parsed(body(metadata(num_messages_in_batch=40, compression=3) + more, b"?"))
    assert (entry.kind, entry.messages_claimed) == (Kind.MALFORMED, 40)
    entry = parsed(body(field(11, 40) + field(8, 3), b"?"))
    assert (entry.kind, entry.messages_claimed) == (Kind.MALFORMED, 40)


@pytest.mark.parametrize("claimed", [0, -5, 2, 4, (1 << 31) - 1, -(1 << 31)])
def test_another_number_of_messages_than_claimed(claimed: int) -> None:
    entry = parsed(batch([part(b"value")] * 3, claimed))
    assert why(entry)
    assert entry.messages_claimed == max(1, claimed)


@pytest.mark.parametrize("size", [-1, -7, 0, 4, 6, 1 << 20, (1 << 31) - 1, -(1 << 31)])
@pytest.mark.parametrize("fields", [{}, {"partition_key": "k"}])
def test_wrong_sizes_of_the_messages_of_a_batch(size: int, fields: dict[str, Any]) -> None:
    wrong = part(b"value", payload_size=size, **fields)
    assert why(parsed(batch([wrong])))
    assert why(parsed(batch([part(b"a"), wrong, part(b"b")])))
    assert why(parsed(batch([part(b"a"), wrong])))


def test_a_size_that_leads_back_in_a_batch() -> None:
    """Back to its own begin: a reader of it must not go round, nor find messages twice."""
    for size in range(-30, 0):
        assert why(parsed(batch([part(b"", payload_size=size)], 2)))
        assert why(parsed(batch([part(b"abcdefg"), part(b"", payload_size=size)], 2)))


def test_wrong_metadata_of_the_messages_of_a_batch() -> None:
    right = part(b"value", partition_key="k")
    for wrong in (
        b"",
        b"\xff",
        b"\xff\xff\xff\xff",
        b"\x00\x00\x00\x00",  # no payload_size
        b"\x00\x00\x00\x03\x12\x01k",
        b"\x00\x00\x00\x02\xff\xff",
        b"\x7f\xff\xff\xff\x18\x00",
        b"\x00\x00\x00\x07\x18\x00\x0a\x03\x0a\x01k",  # a property without a value
    ):
        assert why(parsed(batch([wrong])))
        assert why(parsed(batch([wrong, right])))
        assert why(parsed(batch([right, wrong])))
        assert why(parsed(batch([right, wrong, right])))


@pytest.mark.parametrize(
    "entry",
    [
        b"",
        b"\x0e",
        b"\x0e\x01",
        b"\x0e\x02",
        b"\x0e\x02\xff\xff\xff\xff" + bytes(20),
        b"\x0e\x02\x00\x00\x00\x00" * 3,
        bytes(10),
        b"\xff" * 40,
        body(b"", b"value"),
        body(b"garbage", b"value"),
        body(b"\xff" * 11, b"value"),
        body(b"\x0b" * 200, b"value"),  # groups in groups
        body(field(1, b"p") + field(2, 0), b"value"),
        body(field(1, b"p") + field(3, PUBLISHED_MS), b"value"),
        body(field(2, 1) + field(3, PUBLISHED_MS), b"value"),
        body(metadata() + field(4, b""), b"value"),
        body(metadata() + field(4, field(1, b"a")), b"value"),
        body(metadata() + b"\x32\x7f", b"value"),
        body(metadata(), b"value").replace(b"value", b"other"),
        b"\x0e\x01\x00\x00\x00\x00\x7f\xff\xff\xff" + bytes(8),
    ],
)
def test_entries_that_are_none(entry: bytes) -> None:
    found = parsed(entry)
    assert why(found)
    assert (found.messages_claimed, found.batch_size, found.chunk) == (1, 0, None)


def test_a_chunk() -> None:
    found = metadata(**CHUNK)
    entry = parsed(body(found, b"abc"))
    assert (entry.kind, entry.chunk) == (Kind.CHUNK, ChunkPart("p-7", 0, 3, 9, b"abc", found))
    assert list(entry.portions(1)) == []
    chunk = parsed(body(metadata(**CHUNK) + field(26, b"\xff"), b"abc")).chunk
    assert chunk is not None
    assert chunk.uuid == "\\xff"
    assert chunk.size_bytes == 3 + len(found) + 4


def test_the_only_chunk_of_a_message_is_the_message() -> None:
    found = metadata(**(CHUNK | {"num_chunks_from_msg": 1}))
    assert only(parsed(body(found, b"abc"))).values == [b"abc"]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"uuid": None}, "without the id"),
        ({"uuid": ""}, "without the id"),
        ({"chunk_id": None}, "without an index"),
        ({"chunk_id": 3}, "chunk 3 of 3"),
        ({"chunk_id": -1}, "chunk -1 of 3"),
        ({"total_chunk_msg_size": None}, "0 together"),
        ({"total_chunk_msg_size": -1}, "-1 together"),
        ({"total_chunk_msg_size": 4}, "4 together"),
        ({"total_chunk_msg_size": BYTES_MAX + 1}, "1,048,577 bytes, above"),
        ({"num_chunks_from_msg": (1 << 31) - 1}, "2,147,483,647 with 9"),
    ],
)
def test_chunks_that_are_of_no_message(fields: dict[str, Any], reason: str) -> None:
    assert reason in why(parsed(body(metadata(**(CHUNK | fields)), b"abc")))


def chunk_of(**fields: Any) -> ChunkPart:
    chunk = parsed(body(metadata(**(CHUNK | fields)), b"abc")).chunk
    assert chunk is not None
    return chunk


def test_joined_chunks() -> None:
    chunk = chunk_of(partition_key="k", event_time=4, properties=pairs(("a", "b")))
    entry = assembled(chunk, b"abcdefghi", BYTES_MAX)
    assert only(entry) == Messages([b"abcdefghi"], [b"k"], [4], [[("a", "b")]], [-1])
    assert (entry.publish_time_ms, entry.batch_size) == (PUBLISHED_MS, 0)
    assert "8 bytes instead of 9" in why(assembled(chunk, b"abcdefgh", BYTES_MAX))


def test_joined_chunks_are_decompressed() -> None:
    payload = compressed(b"abc" * 1_000, 3)
    fields = {"compression": 3, "uncompressed_size": 3_000, "total_chunk_msg_size": len(payload)}
    chunk = chunk_of(**fields)
    assert only(assembled(chunk, payload, BYTES_MAX)).values == [b"abc" * 1_000]
    assert "above 2,999" in why(assembled(chunk, payload, 2_999))
    chunk = replace(chunk, total_bytes=len(payload) - 1)
    assert "cannot be decompressed" in why(assembled(chunk, payload[:-1], BYTES_MAX))


def _goes_well(entry: bytes, bytes_max: int = BYTES_MAX) -> Entry:
    """Any bytes give an entry, and what it has is consistent."""
    found = parse_entry(entry, bytes_max)
    assert found.messages_claimed >= 1
    assert (found.kind is Kind.MALFORMED) == bool(found.why)
    assert (found.kind is Kind.CHUNK) == (found.chunk is not None)
    indexes: list[int] = []
    for each in found.portions(3):
        assert 0 < len(each) <= 3
        lengths = {len(each.keys), len(each.event_times_ms), len(each.properties)}
        assert lengths | {len(each.batch_indexes)} == {len(each)}
        indexes += each.batch_indexes
    assert indexes == sorted(set(indexes))
    assert found.kind is Kind.MESSAGES or not indexes
    assert not found.batch_size or all(0 <= each < found.batch_size for each in indexes)
    if found.chunk is not None:
        assembled(found.chunk, bytes(found.chunk.total_bytes), bytes_max)
    return found


@given(entry=st.binary(max_size=200), head=st.binary(max_size=60), payload=st.binary(max_size=200))
def test_any_bytes_give_an_entry(entry: bytes, head: bytes, payload: bytes) -> None:
    _goes_well(entry)
    _goes_well(body(head, payload))
    _goes_well(body(metadata() + head, payload))
    _goes_well(body(metadata(num_messages_in_batch=2), part(b"v", head) + payload))


_FIELDS = st.lists(
    st.tuples(st.integers(1, 34), st.integers(0, 40) | st.binary(max_size=12)), max_size=8
)


@given(fields=_FIELDS, singles=st.lists(_FIELDS, max_size=4), claimed=st.integers(-1, 5))
def test_any_fields_give_an_entry(
    fields: list[tuple[int, int | bytes]],
    singles: list[list[tuple[int, int | bytes]]],
    claimed: int,
) -> None:
    head = metadata(num_messages_in_batch=claimed) + b"".join(field(*each) for each in fields)
    parts = [part(b"value", b"".join(field(*each) for each in single)) for single in singles]
    _goes_well(body(head, b"".join(parts)))


VALID = [
    body(metadata(), b"value"),
    body(metadata(partition_key="k", event_time=5, properties=pairs(("a", "b"))), b"value"),
    batch([part(b"value", sequence_id=each) for each in range(5)]),
    batch([part(b"value", partition_key="k", properties=pairs(("a", "b"))) for _ in range(5)]),
    body(metadata(**CHUNK), b"abc"),
    *(
        body(metadata(compression=codec, uncompressed_size=500), compressed(b"abcde" * 100, codec))
        for codec in (1, 2, 3, 4)
    ),
]


@given(
    entry=st.sampled_from(VALID),
    place=st.integers(0, 200),
    byte=st.integers(0, 255),
    cut=st.integers(0, 3),
)
def test_entries_that_are_changed(entry: bytes, place: int, byte: int, cut: int) -> None:
    place %= len(entry)
    changed = entry[:place] + bytes([byte]) + entry[place + cut :]
    found = _goes_well(changed)
    assert changed == entry or found.kind is Kind.MALFORMED  # the checksum is wrong, or its size
    _goes_well(body(b"", b"")[:6] + changed[6:])
    _goes_well(changed[6:])


def _costs(entry: bytes, bytes_max: int = BYTES_MAX) -> tuple[int, float]:
    """Bytes of memory and seconds of processor time that an entry takes; it is gone through."""
    tracemalloc.start()
    begin = time.process_time()
    try:
        for _ in parse_entry(entry, bytes_max).portions(1_000):
            pass
        return tracemalloc.get_traced_memory()[1], time.process_time() - begin
    finally:
        tracemalloc.stop()


def test_what_hostile_entries_cost() -> None:
    bomb = compressed(bytes(64 << 20), 2)
    claims = {"compression": 2, "uncompressed_size": 1_000}
    memory, seconds = _costs(body(metadata(**claims), bomb))
    assert memory < 1 << 20
    assert seconds < 5
    claims = {"compression": 3, "uncompressed_size": 1 << 31}
    assert _costs(body(metadata(**claims), compressed(bytes(64 << 20), 3)))[0] < 1 << 20
    memory, seconds = _costs(body(metadata(**CHUNK), b"x" * 9))
    assert memory < 1 << 20


@pytest.mark.slow
def test_what_very_many_parts_cost() -> None:
    """Memory is a small multiple of the entry, here of 600 KB."""
    memory, seconds = _costs(batch([part(b"")] * 100_000))
    assert memory < 4 << 20
    assert seconds < 20
    many = pairs(*[(f"k{number:05}", "v") for number in range(10)])
    memory, seconds = _costs(batch([part(b"", properties=many)] * 15_000))
    assert memory < 80 << 20
    assert seconds < 20
