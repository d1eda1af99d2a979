"""When an entry is to be delivered."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.wire.delivery_time import DELAY_TAG, due_time_ms_of
from headgate.wire.entry import MAGIC_BROKER_ENTRY, build_entry
from headgate.wire.messages import MessageMetadata

NOW_MS = 1_750_000_000_000


def entry(payload: bytes = b"x", *, checksum: bool = True, **fields: object) -> bytes:
    metadata = MessageMetadata(producer_name="p", sequence_id=1, publish_time=NOW_MS, **fields)
    return build_entry(metadata, payload, checksum=checksum)


@given(st.integers(-(1 << 40), 1 << 40), st.booleans())
def test_it_is_that_of_the_metadata_behind_the_publish_time(delay_ms: int, checksum: bool) -> None:
    body = entry(deliver_at_time=NOW_MS + delay_ms, checksum=checksum)
    assert due_time_ms_of(body) == (NOW_MS + delay_ms if delay_ms > 0 else 0)


def test_with_the_brokers_own_metadata() -> None:
    head = MAGIC_BROKER_ENTRY.to_bytes(2) + (4).to_bytes(4) + b"\x98\x01ab"
    assert due_time_ms_of(head + entry(deliver_at_time=NOW_MS + 5)) == NOW_MS + 5
    assert due_time_ms_of(head + entry()) == 0


@pytest.mark.parametrize(
    "body",
    [
        entry(),
        entry(DELAY_TAG * 3),
        entry(partition_key=DELAY_TAG.decode("latin-1")),
        b"",
        b"\x0e\x01",
        bytes(40),
        entry(deliver_at_time=NOW_MS + 5)[:20],
        b"\x0e\x01" + bytes(4) + (4).to_bytes(4) + DELAY_TAG + b"\xff\xff",
    ],
)
def test_what_is_not_delayed(body: bytes) -> None:
    assert due_time_ms_of(body) == 0
