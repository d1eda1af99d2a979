"""The fixed sizes and names of version 2: a change here is a change of format."""

from __future__ import annotations

import pytest

from headgate.ledger.format import records as layout


def test_sizes_of_version_two() -> None:
    assert layout.PREFIX_BYTES == 16
    assert layout.ENTRY_HEAD_BYTES == 44
    assert layout.ENTRY_REST.size == layout.ENTRY_HEAD_BYTES - layout.CRC_BYTES
    assert layout.BATCH_RECORD_BYTES == 80
    assert layout.RUN_RECORD_BYTES == 80
    assert len(layout.segment_header(1, 2)) == layout.SEGMENT_HEADER_BYTES == 64


def test_a_record_is_frozen() -> None:
    data = layout.record(layout.KIND_DELETE, layout.CURSOR_ID.pack(5), (7 << 32) | 9)
    assert data.hex() == "c85ae93c0800000006020000090000000500000000000000"
    assert layout.crc32c(data[4:]) == layout.CRC.unpack_from(data)[0]


def test_segment_names() -> None:
    assert layout.segment_name(255) == "00000000000000ff.log"
    assert layout.segment_of_name("00000000000000ff.log") == 255


@pytest.mark.parametrize("name", ["format", "ff.log", "00000000000000ff.tmp", "z" * 16 + ".log"])
def test_other_names_are_no_segments(name: str) -> None:
    assert layout.segment_of_name(name) is None


def test_a_header_belongs_to_its_segment() -> None:
    header = layout.segment_header(7, 123)
    assert layout.segment_stamp(header, 7) == 123
    assert layout.segment_stamp(header, 8) is None
    assert layout.segment_stamp(header[:-1], 7) is None
    assert layout.segment_stamp(b"\1" + header[1:], 7) is None


@pytest.mark.parametrize(("version", "stamp"), [(1, None), (2, 123), (3, 123), (4, 123), (5, None)])
def test_only_headers_of_this_version_and_the_one_before_are_read(
    version: int, stamp: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(layout, "SEGMENT_VERSION", version)
        header = layout.segment_header(7, 123)
    assert layout.segment_stamp(header, 7) == stamp


def test_zeros_end_the_records_of_a_file_that_was_used_before() -> None:
    new, reused = (layout.segment_header(7, 1, is_reused=used) for used in (False, True))
    rest = bytes(16) + b"old"
    assert layout.has_bytes(new + rest, 64)
    assert not layout.has_bytes(new + bytes(100), 64)
    assert not layout.has_bytes(new + rest, 64, 80)
    assert not layout.has_bytes(reused + rest, 64)
    assert layout.has_bytes(reused + rest, 65)
    assert not layout.has_bytes(b"", 64)
