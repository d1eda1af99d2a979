from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.wire.batch import pack_batch, unpack_batch
from headgate.wire.errors import RemoteProtocolError


@given(st.lists(st.binary(max_size=300), max_size=8))
def test_round_trip(payloads: list[bytes]) -> None:
    unpacked = unpack_batch(pack_batch(payloads), len(payloads))
    assert [payload for _, payload in unpacked] == payloads


def test_layout() -> None:
    assert pack_batch([b"abc"]) == b"\x00\x00\x00\x02\x18\x03abc"


@pytest.mark.parametrize("cut", range(len(pack_batch([b"abc"]))))
def test_cut_anywhere(cut: int) -> None:
    with pytest.raises(RemoteProtocolError):
        list(unpack_batch(pack_batch([b"abc"])[:cut], 1))


def test_negative_size() -> None:
    with pytest.raises(RemoteProtocolError, match="longer"):
        list(unpack_batch(b"\x00\x00\x00\x0b\x18" + b"\xff" * 9 + b"\x01", 1))


@given(st.binary(max_size=60))
def test_nothing_but_remote_errors(payload: bytes) -> None:
    with contextlib.suppress(RemoteProtocolError):
        list(unpack_batch(payload, 3))
