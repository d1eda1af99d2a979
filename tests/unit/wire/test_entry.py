from __future__ import annotations

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.wire import entry
from headgate.wire.errors import RemoteProtocolError
from headgate.wire.messages import BrokerEntryMetadata, MessageMetadata


def metadata(**fields: object) -> MessageMetadata:
    return MessageMetadata(
        producer_name="p", sequence_id=7, publish_time=1_700_000_000_123, **fields
    )  # type: ignore[arg-type]


def with_broker_metadata(body: bytes) -> bytes:
    encoded = BrokerEntryMetadata(broker_timestamp=5, index=41).SerializeToString()
    return struct.pack(">HI", entry.MAGIC_BROKER_ENTRY, len(encoded)) + encoded + body


PLAIN = entry.build_entry(metadata(), b"payload", checksum=False)
CHECKED = entry.build_entry(metadata(), b"payload")
FORMS = {
    "plain": PLAIN,
    "checked": CHECKED,
    "broker plain": with_broker_metadata(PLAIN),
    "broker checked": with_broker_metadata(CHECKED),
}
every_form = pytest.mark.parametrize("body", FORMS.values(), ids=FORMS)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        # RFC 3720, appendix B.4.
        (b"\x00" * 32, 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(range(31, -1, -1)), 0x113FDB5C),
        # The check value that catalogues of CRCs list.
        (b"123456789", 0xE3069283),
    ],
)
def test_crc32c_vectors(data: bytes, expected: int) -> None:
    assert entry.crc32c(data) == expected


def test_layout_of_an_entry() -> None:
    encoded = metadata().SerializeToString()
    covered = struct.pack(">I", len(encoded)) + encoded + b"payload"
    assert covered == PLAIN
    assert b"\x0e\x01" + struct.pack(">I", entry.crc32c(covered)) + covered == CHECKED


@every_form
def test_every_form_is_read(body: bytes) -> None:
    assert entry.checksum_ok(body)
    assert entry.parse_metadata(body) == metadata()
    assert entry.payload_of(body) == b"payload"
    assert entry.strip_checksum(body) == PLAIN


@every_form
def test_cut_anywhere(body: bytes) -> None:
    for size in range(len(body) - len(b"payload")):
        try:
            valid = entry.checksum_ok(body[:size])
        except RemoteProtocolError:
            valid = False
        assert not valid
        with pytest.raises(RemoteProtocolError):
            entry.parse_metadata(body[:size])


def test_any_flipped_bit_under_the_checksum_is_seen() -> None:
    for body in (CHECKED, FORMS["broker checked"]):
        after_magic = body.index(b"\x0e\x01") + 2
        for bit in range(after_magic * 8, len(body) * 8):
            damaged = bytearray(body)
            damaged[bit // 8] ^= 1 << bit % 8
            assert not entry.checksum_ok(bytes(damaged))


def test_metadata_larger_than_the_entry_with_a_right_checksum() -> None:
    covered = struct.pack(">I", 2**32 - 1) + b"abcd"
    body = struct.pack(">HI", entry.MAGIC_CHECKSUM, entry.crc32c(covered)) + covered
    with pytest.raises(RemoteProtocolError, match="too short"):
        entry.checksum_ok(body)


def test_a_batch_is_reported_by_presence() -> None:
    assert entry.batch_size(metadata()) is None
    assert entry.batch_size(metadata(num_messages_in_batch=1)) == 1
    assert entry.batch_size(metadata(num_messages_in_batch=9)) == 9


def test_chunks() -> None:
    assert entry.chunk_facts(metadata()) is None
    fields = {"uuid": "u", "chunk_id": 0, "num_chunks_from_msg": 3, "total_chunk_msg_size": 99}
    assert entry.chunk_facts(metadata(**fields)) == entry.ChunkFacts("u", 0, 3, 99)


def test_missing_or_broken_metadata() -> None:
    incomplete = struct.pack(">I", 0) + b"payload"
    with pytest.raises(RemoteProtocolError, match="required"):
        entry.parse_metadata(incomplete)
    with pytest.raises(RemoteProtocolError, match="no valid message metadata"):
        entry.parse_metadata(struct.pack(">I", 1) + b"\xff")


@given(st.binary(max_size=80))
def test_nothing_but_remote_errors(body: bytes) -> None:
    for read in (entry.checksum_ok, entry.parse_metadata):
        with contextlib.suppress(RemoteProtocolError):
            read(body)


def test_a_key_may_be_text_bytes_empty_or_null() -> None:
    assert entry.key_facts(metadata()) is None
    assert entry.key_facts(metadata(partition_key="")) == ("", False, False)
    bytes_key = metadata(partition_key="aWQ=", partition_key_b64_encoded=True)
    assert entry.key_facts(bytes_key) == ("aWQ=", True, False)
    assert entry.key_facts(metadata(null_partition_key=True)) == ("", False, True)
