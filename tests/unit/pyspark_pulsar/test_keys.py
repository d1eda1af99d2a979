"""KeyDecoder: what is text, what is bytes, and who is asked when that cannot be seen."""

from __future__ import annotations

import base64
import tracemalloc
import zlib
from collections.abc import Collection, Sequence

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.wire._generated.PulsarApi_pb2 import SingleMessageMetadata
from pyspark_pulsar.errors import AdminError
from pyspark_pulsar.keys import (
    KeyDecoder,
    KeyKind,
    MessageRef,
    is_base64,
    is_malformed,
    key_kind_of,
)
from pyspark_pulsar.offsets import Position
from tests.unit.pyspark_pulsar.fakes import FakeMessage

BYTES = KeyKind(is_there=True, is_encoded=True)
TEXT = KeyKind(is_there=True, is_encoded=False)
NONE = KeyKind(is_there=False, is_encoded=False)


class Service:
    """Knows the kind of keys by entry, and who was asked about."""

    def __init__(self, kinds: dict[int, KeyKind]) -> None:
        self._kinds = kinds
        self.asked: list[int] = []

    def __call__(self, places: Collection[MessageRef]) -> dict[MessageRef, KeyKind | None]:
        self.asked += sorted(place.entry_id for place in places)
        return {place: self._kinds.get(place.entry_id) for place in places}


def messages(*keys: tuple[str, str]) -> list[FakeMessage]:
    """Messages of producers, with their keys."""
    return [
        FakeMessage(Position(3, entry), key=key, producer=producer)
        for entry, (producer, key) in enumerate(keys)
    ]


def cells(keys: KeyDecoder, found: Sequence[FakeMessage]) -> list[bytes | None]:
    return keys.cells(found, [each.message_id() for each in found])


def test_a_key_that_is_not_base64_costs_no_request() -> None:
    service = Service({})
    assert cells(KeyDecoder("t", service), messages(("p", "order-1"), ("p", "äöü"))) == [
        b"order-1",
        "äöü".encode(),
    ]
    assert service.asked == []


def test_a_key_like_base64_costs_one_request_per_producer() -> None:
    service = Service({0: BYTES, 1: TEXT})
    keys = KeyDecoder("t", service)
    sent = [("java", "AAEC"), ("python", "AAEC"), ("java", "//8="), ("python", "12345678")]
    wanted = [b"\x00\x01\x02", b"AAEC", b"\xff\xff", b"12345678"]
    assert cells(keys, messages(*sent)) == wanted
    assert cells(keys, messages(*sent)) == wanted
    assert service.asked == [0, 1]


def test_an_empty_key_is_not_none() -> None:
    service = Service({0: NONE, 1: TEXT, 2: BYTES})
    keys = KeyDecoder("t", service)
    sent = messages(("without", ""), ("text", ""), ("bytes", ""), ("without", ""), ("text", "k"))
    assert cells(keys, sent) == [None, b"", b"", None, b"k"]
    assert service.asked == [0, 1, 2]


def test_an_undecidable_key_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    def silent(_: Collection[MessageRef]) -> dict[MessageRef, KeyKind | None]:
        raise AdminError("not allowed")

    keys = KeyDecoder("t", silent)
    for _ in range(2):
        assert cells(keys, messages(("a\x1b", "AAEC"), ("b", ""))) == [b"AAEC", None]
    assert len(caplog.messages) == 1
    assert "producer a\ufffd " in caplog.messages[0]
    assert "not allowed" in caplog.messages[0]


@given(st.binary(min_size=1, max_size=40))
def test_base64_texts_are_recognized(data: bytes) -> None:
    text = base64.b64encode(data).decode()
    assert is_base64(text)
    assert not is_base64(text + "-")
    assert not is_base64(text[:-1])


@pytest.mark.parametrize("text", ["AB==", "A B=", "AAE\n", "====", "ab-_"])
def test_other_texts_are_not_base64(text: str) -> None:
    assert not is_base64(text)


def test_the_headers_hold_the_key_of_a_single_message() -> None:
    def kind(**headers: str) -> KeyKind | None:
        named = {f"x-pulsar-{name.replace('_', '-')}": value for name, value in headers.items()}
        return key_kind_of(named, b"", -1)

    assert kind() == NONE
    assert kind(partition_key="") == TEXT
    assert kind(partition_key="AAEC", partition_key_b64_encoded="true") == BYTES
    assert kind(partition_key="", null_partition_key="true") == NONE


def batch(*metadata: SingleMessageMetadata) -> bytes:
    parts = []
    for each in metadata:
        each.payload_size = 5
        encoded = each.SerializeToString()
        parts.append(len(encoded).to_bytes(4) + encoded + b"12345")
    return b"".join(parts)


BATCH = batch(
    SingleMessageMetadata(),
    SingleMessageMetadata(
        partition_key="AAEC", partition_key_b64_encoded=True, event_time=1 << 60, ordering_key=b"x"
    ),
    SingleMessageMetadata(partition_key="", null_value=True),
    SingleMessageMetadata(null_partition_key=True),
)
KINDS = [NONE, BYTES, TEXT, NONE]


@pytest.mark.parametrize(
    ("codec", "compressed"),
    [
        ("NONE", BATCH),
        ("ZLIB", zlib.compress(BATCH)),
        ("LZ4", pa.compress(BATCH, "lz4_raw", asbytes=True)),
        ("ZSTD", pa.compress(BATCH, "zstd", asbytes=True)),
        ("SNAPPY", pa.compress(BATCH, "snappy", asbytes=True)),
        ("LZ4", BATCH),
    ],
)
def test_a_batch_contains_its_keys(codec: str, compressed: bytes) -> None:
    """Compressed as Headgate gives it, or not any more, as Apache Pulsar does."""
    headers = {
        "x-pulsar-num-batch-message": "4",
        "x-pulsar-compression": codec,
        "x-pulsar-uncompressed-size": str(len(BATCH)),
    }
    assert [key_kind_of(headers, compressed, index) for index in range(4)] == KINDS
    assert key_kind_of(headers, compressed, 4) is None


@given(
    st.binary(max_size=60),
    st.sampled_from(["NONE", "ZLIB", "LZ4", "ZSTD", "SNAPPY", "?"]),
    st.sampled_from([300, 1 << 31]),
)
def test_an_encrypted_batch_gives_no_keys_and_no_error(body: bytes, codec: str, size: int) -> None:
    headers = {
        "x-pulsar-num-batch-message": "9",
        "x-pulsar-compression": codec,
        "x-pulsar-uncompressed-size": str(size),
    }
    assert key_kind_of(headers, body, 8) is None


LONG = (1 << 31) - 1


@pytest.mark.parametrize(
    ("count", "codec", "body", "malformed"),
    [
        (4, "NONE", BATCH, False),
        (4, "ZLIB", zlib.compress(BATCH), False),
        (4, "LZ4", BATCH, False),
        (5, "NONE", BATCH, True),
        (4, "NONE", BATCH[:-1], True),
        (4, "NONE", LONG.to_bytes(4) + BATCH, True),
        (1, "NONE", b"", True),
        (800_000, "ZSTD", b"\xff" * 40, True),
        (None, "NONE", b"", False),
        (None, "NONE", b"\xff" * 40, False),
        (None, "SNAPPY", b"\xff" * 40, True),
        (None, "LZ4", pa.compress(BATCH, "lz4_raw", asbytes=True), False),
    ],
)
def test_entries_that_cannot_be_taken_apart(
    count: int | None, codec: str, body: bytes, malformed: bool
) -> None:
    headers = {"x-pulsar-compression": codec, "x-pulsar-uncompressed-size": str(len(BATCH))}
    if count is not None:
        headers["x-pulsar-num-batch-message"] = str(count)
    assert is_malformed(headers, body) is malformed


COMPRESSED = [
    ("ZLIB", zlib.compress(BATCH)),
    ("LZ4", pa.compress(BATCH, "lz4_raw", asbytes=True)),
    ("ZSTD", pa.compress(BATCH, "zstd", asbytes=True)),
    ("SNAPPY", pa.compress(BATCH, "snappy", asbytes=True)),
]


@pytest.mark.parametrize(("codec", "body"), COMPRESSED)
@pytest.mark.parametrize("size", [-1, 0, 1, len(BATCH) - 1, len(BATCH) + 1, 1 << 20])
def test_a_wrong_size_is_malformed(codec: str, body: bytes, size: int) -> None:
    headers = {"x-pulsar-compression": codec, "x-pulsar-uncompressed-size": str(size)}
    assert is_malformed(headers, body)
    assert is_malformed(headers, body[:-2])


@pytest.mark.parametrize("size", [-1, 0, 1 << 20])
def test_no_more_is_decompressed_than_a_producer_claimed(size: int) -> None:
    body = zlib.compress(bytes(64 << 20))
    headers = {"x-pulsar-compression": "ZLIB", "x-pulsar-uncompressed-size": str(size)}
    tracemalloc.start()
    try:
        assert is_malformed(headers, body)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


LONG_NUMBER = (5_000_000).to_bytes(4) + b"\xff" * 5_000_000
"""The metadata of a message is one number of five megabytes."""
MANY_FIELDS = (5_000_000).to_bytes(4) + b"\x08\x01" * 2_500_000
MANY_MESSAGES = bytes(5_000_000)


@pytest.mark.parametrize("batch", [LONG_NUMBER, MANY_FIELDS, MANY_MESSAGES])
def test_what_takes_long_to_go_through_is_given_up(batch: bytes) -> None:
    """The first one took minutes."""
    headers = {"x-pulsar-num-batch-message": "1250000"}
    assert key_kind_of(headers, batch, 1_249_999) is None
    assert is_malformed(headers, batch)


@pytest.mark.parametrize(
    ("codec", "body"),
    [("ZLIB", zlib.compress(b"")), ("LZ4", pa.compress(b"", "lz4_raw", asbytes=True))],
)
def test_an_empty_message_may_be_compressed(codec: str, body: bytes) -> None:
    headers = {"x-pulsar-compression": codec, "x-pulsar-uncompressed-size": "0"}
    assert not is_malformed(headers, body)


SIZED_LARGE, SIZED_1 = b"\x18\xe0\xd4\x03", b"\x18\x01"
"""The field with the size of the payload: 60,000, and 1."""


@pytest.mark.parametrize(
    "fields",
    [
        SIZED_LARGE,
        SIZED_LARGE + SIZED_1,
        SIZED_LARGE + b"\x00\x00" + SIZED_1,
        SIZED_LARGE + b"\xf8\xff\xff\xff\xff\x01\x00" + SIZED_1,
        SIZED_LARGE + b"\x98\x80\x80\x80\x80\x00\x01",
        SIZED_LARGE + b"\x18\x81",
        b"\x00\x00" + SIZED_1,
        b"\x0b" + SIZED_1,
        SIZED_1 + b"\x12\x05a",
        SIZED_1 + b"\x3d\x00",
        SIZED_1 + b"\x1a\x00",
        b"\x0a\x01a" + SIZED_1,
        b"\x0a\x03\x0a\x05a" + SIZED_1,
    ],
)
def test_no_size_is_found_that_the_client_does_not_find(fields: bytes) -> None:
    """Its library stops at a wrong field, and the client goes by what stands before it."""
    batch = len(fields).to_bytes(4) + fields + b"x"
    assert is_malformed({"x-pulsar-num-batch-message": "1"}, batch)


def test_fields_of_later_releases_are_none_of_these() -> None:
    fields = (
        b"\x0a\x06\x0a\x01a\x12\x01b"
        + SIZED_1
        + b"\x12\x01k"
        + b"\xfa\x01\x02ab"
        + b"\xf8\x3f\x7f"
        + b"\x71"
        + bytes(8)
    )
    batch = len(fields).to_bytes(4) + fields + b"x"
    assert not is_malformed({"x-pulsar-num-batch-message": "1"}, batch)
