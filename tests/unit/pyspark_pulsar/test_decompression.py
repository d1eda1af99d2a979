"""Compressed payloads have exactly the size that is stated."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_pulsar.decompression import LZ4, NONE, SNAPPY, ZLIB, ZSTD, decompressed
from pyspark_pulsar.metadata import PartError
from tests.unit.pyspark_pulsar.entry_bytes import compressed

BYTES_MAX = 1 << 20
CODECS = st.sampled_from([LZ4, ZLIB, ZSTD, SNAPPY])


@given(payload=st.binary(max_size=300).map(lambda data: data * 7), codec=CODECS)
def test_what_is_compressed_comes_back(payload: bytes, codec: int) -> None:
    packed = compressed(payload, codec)
    assert decompressed(packed, codec, len(payload), BYTES_MAX) == payload
    for size in (len(payload) - 1, len(payload) + 1, len(payload) + 40):
        if size >= 0:
            with pytest.raises(PartError):
                decompressed(packed, codec, size, BYTES_MAX)


@given(packed=st.binary(max_size=80), codec=CODECS, size=st.integers(0, 300))
def test_anything_has_the_stated_size_or_is_refused(packed: bytes, codec: int, size: int) -> None:
    for payload in (packed, b"\x28\xb5\x2f\xfd" + packed):
        try:
            assert len(decompressed(payload, codec, size, BYTES_MAX)) == size
        except PartError:
            continue


def test_uncompressed_payloads_stay_and_state_no_size() -> None:
    assert decompressed(b"abc", NONE, 99, 1) == b"abc"


def test_an_empty_payload_may_stay_empty() -> None:
    for codec in (LZ4, ZLIB, ZSTD, SNAPPY):
        assert decompressed(b"", codec, 0, BYTES_MAX) == b""


def test_the_bound() -> None:
    packed = compressed(bytes(1_000), ZSTD)
    assert decompressed(packed, ZSTD, 1_000, 1_000) == bytes(1_000)
    with pytest.raises(PartError, match="1,000 bytes before compression, above 999"):
        decompressed(packed, ZSTD, 1_000, 999)


def test_a_zstandard_frame_need_not_state_its_size() -> None:
    """The header of RFC 8878 without a content size, and one raw block of three bytes."""
    frame = bytes.fromhex("28b52ffd 00 00 190000") + b"abc"
    assert decompressed(frame, ZSTD, 3, BYTES_MAX) == b"abc"
    for size in (0, 2, 4):
        with pytest.raises(PartError):
            decompressed(frame, ZSTD, size, BYTES_MAX)


@pytest.mark.parametrize("size", [200, 300, 70_000])
def test_zstandard_frames_state_their_size_in_fields_of_each_width(size: int) -> None:
    packed = compressed(bytes(size), ZSTD)
    assert decompressed(packed, ZSTD, size, BYTES_MAX) == bytes(size)
    with pytest.raises(PartError):
        decompressed(packed + packed, ZSTD, size, BYTES_MAX)
