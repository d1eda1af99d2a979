"""How many messages a SEND may say that its entry holds."""

from __future__ import annotations

import pytest

from headgate.wire.batch import pack_batch
from headgate.wire.entry import build_entry
from headgate.wire.errors import RemoteProtocolError
from headgate.wire.message_counts import BATCHED_MESSAGE_BYTES_MIN, check_message_count
from headgate.wire.messages import MessageMetadata

BATCH_BYTES_MAX = 5 * 1024 * 1024
LZ4 = 1
ONE = pack_batch([b""])
"""A batch of one message."""


def entry(
    payload: bytes = b"x", *, checksum: bool = True, producer_name: str = "p", **fields: int
) -> bytes:
    metadata = MessageMetadata(
        producer_name=producer_name, sequence_id=1, publish_time=1_700_000_000_000, **fields
    )
    return build_entry(metadata, payload, checksum=checksum)


def check(claimed: int, body: bytes) -> bool:
    return check_message_count(claimed, body, BATCH_BYTES_MAX)


@pytest.mark.parametrize("checksum", [True, False])
@pytest.mark.parametrize("producer_name", ["p", "X", "XX\x01"])
def test_a_single_message_is_one(checksum: bool, producer_name: str) -> None:
    body = entry(checksum=checksum, producer_name=producer_name)
    check(1, body)
    for claimed in (2, 1_000, 2**31 - 1, 0, -1, -(2**31)):
        with pytest.raises(RemoteProtocolError):
            check(claimed, body)


@pytest.mark.parametrize("checksum", [True, False])
@pytest.mark.parametrize("count", [1, 2, 88, 1_000])
def test_a_batch_is_what_it_holds(checksum: bool, count: int) -> None:
    body = entry(pack_batch([b""] * count), checksum=checksum, num_messages_in_batch=count)
    check(count, body)
    for claimed in {1, count - 1, count + 1, 2**31 - 1} - {count}:
        with pytest.raises(RemoteProtocolError):
            check(claimed, body)


def test_a_chunk_is_one() -> None:
    check(1, entry(b"x" * 100, num_chunks_from_msg=3, chunk_id=1, total_chunk_msg_size=300))


def test_a_batch_holds_no_more_than_fits() -> None:
    assert len(pack_batch([b""] * 7)) == 7 * BATCHED_MESSAGE_BYTES_MIN
    with pytest.raises(RemoteProtocolError, match="2147483647 messages in 1 bytes"):
        check(2**31 - 1, entry(num_messages_in_batch=2**31 - 1))
    check(1, entry(ONE, num_messages_in_batch=1))
    with pytest.raises(RemoteProtocolError, match="a batch of 1 messages in 0 bytes"):
        check(1, entry(b"", num_messages_in_batch=1))
    check(1, entry(b""))
    most = BATCH_BYTES_MAX // BATCHED_MESSAGE_BYTES_MIN
    check(most, entry(num_messages_in_batch=most, compression=LZ4))
    with pytest.raises(RemoteProtocolError):
        check(most + 1, entry(num_messages_in_batch=most + 1, compression=LZ4))


@pytest.mark.parametrize("checksum", [True, False])
@pytest.mark.parametrize("time_ms", [1_700_000_000_001, 1_700_000_003_000, 2**63 - 1])
def test_a_delay_is_seen(checksum: bool, time_ms: int) -> None:
    assert check(1, entry(checksum=checksum, deliver_at_time=time_ms))
    assert check(1, entry(ONE, checksum=checksum, deliver_at_time=time_ms, num_messages_in_batch=1))


@pytest.mark.parametrize("time_ms", [1_700_000_000_000, 1, 0, -1])
def test_a_time_that_is_past_is_no_delay(time_ms: int) -> None:
    assert not check(1, entry(deliver_at_time=time_ms))
    assert not check(1, entry(ONE, deliver_at_time=time_ms, num_messages_in_batch=1))


@pytest.mark.parametrize("checksum", [True, False])
def test_what_only_looks_like_a_delay_is_none(checksum: bool) -> None:
    assert not check(1, entry(b"\x98\x01\x07", checksum=checksum))
    # An event time whose bytes are the field's tag: the parser knows better.
    body = entry(checksum=checksum, event_time=0x98)
    assert b"\x98\x01" in body
    assert not check(1, body)
