"""The publish time as read by hand, against the parser."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.wire import publish_time
from headgate.wire.entry import MAGIC_BROKER_ENTRY, build_entry, parse_metadata
from headgate.wire.messages import MessageMetadata
from headgate.wire.publish_time import publish_time_ms_of

NOW_MS = 1_790_000_000_123
UINT64_MAX = (1 << 64) - 1


def entry(
    *, name: str = "standalone-0-17", sequence_id: int = 5, time_ms: int = NOW_MS,
    checksum: bool = True, **fields: int,
) -> bytes:  # fmt: skip
    metadata = MessageMetadata(
        producer_name=name, sequence_id=sequence_id, publish_time=time_ms, **fields
    )
    return build_entry(metadata, b"payload", checksum=checksum)


def raw_entry(metadata: bytes, payload: bytes = b"") -> bytes:
    """An entry with these bytes of metadata, whatever they are; its checksum is wrong."""
    return struct.pack(">HII", 0x0E01, 0, len(metadata)) + metadata + payload


@pytest.fixture
def no_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: bytes) -> None:
        raise AssertionError("the parser was asked")

    monkeypatch.setattr(publish_time, "parse_head", refuse)


@pytest.mark.usefixtures("no_parser")
@pytest.mark.parametrize("name", ["", "p", "standalone-0-17", "x" * 127])
@pytest.mark.parametrize("sequence_id", [0, 127, 128, 300_000, 2**63, UINT64_MAX])
@pytest.mark.parametrize("time_ms", [2**35, NOW_MS, 2**42 - 1])
def test_what_clients_send_is_read_without_the_parser(
    name: str, sequence_id: int, time_ms: int
) -> None:
    body = entry(name=name, sequence_id=sequence_id, time_ms=time_ms, num_messages_in_batch=7)
    assert publish_time_ms_of(body) == time_ms


@given(
    st.text(max_size=140),
    st.integers(0, UINT64_MAX),
    st.integers(0, UINT64_MAX) | st.integers(2**34, 2**43),
    st.booleans(),
    st.sampled_from([{}, {"num_messages_in_batch": 3}, {"deliver_at_time": 24}]),
)
def test_agrees_with_the_parser(
    name: str, sequence_id: int, time_ms: int, checksum: bool, fields: dict[str, int]
) -> None:
    body = entry(name=name, sequence_id=sequence_id, time_ms=time_ms, checksum=checksum, **fields)
    assert publish_time_ms_of(body) == parse_metadata(body).publish_time == time_ms
    mark = struct.pack(">HI", MAGIC_BROKER_ENTRY, 2) + b"\x10\x01"
    assert publish_time_ms_of(mark + body) == time_ms


def test_any_order_of_fields_is_read() -> None:
    name, sequence = b"\x0a\x01p", b"\x10\x05"
    time = b"\x18" + entry()[-len(b"payload") - 6 : -len(b"payload")]
    for metadata in (time + name + sequence, name + time + sequence, name + sequence + time):
        assert publish_time_ms_of(raw_entry(metadata)) == NOW_MS
    assert publish_time_ms_of(raw_entry(name + sequence + b"\x32\x00" + time)) == NOW_MS


def test_without_a_publish_time_there_is_none() -> None:
    """Also where the payload looks as if it went on with one."""
    whole = entry()[10 : -len(b"payload")]
    for cut in range(len(whole)):
        assert publish_time_ms_of(raw_entry(whole[:cut], whole[cut:])) == 0
    assert publish_time_ms_of(raw_entry(whole, whole)) == NOW_MS
    assert publish_time_ms_of(entry(time_ms=0)) == 0


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\x0e\x01",
        bytes(40),
        b"\xff" * 40,
        raw_entry(b""),
        raw_entry(b"\x0a\xff"),
        raw_entry(b"\x0a\x01p\x10" + b"\xff" * 100_000),
        raw_entry(b"\x0a\x01p\x10" + b"\xff" * 30 + b"\x01\x18" + b"\x80" * 5 + b"\x01"),
    ],
)
def test_what_is_no_entry_has_none(body: bytes) -> None:
    assert publish_time_ms_of(body) == 0


@given(st.binary(max_size=40), st.integers(0, 60), st.integers(0, 255))
def test_no_bytes_make_it_fail(noise: bytes, at: int, value: int) -> None:
    assert publish_time_ms_of(noise) >= 0
    damaged = bytearray(entry())
    damaged[at % len(damaged)] = value
    assert 0 <= publish_time_ms_of(bytes(damaged)) <= UINT64_MAX
    assert publish_time_ms_of(bytes(damaged[: at % len(damaged)])) >= 0
