from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.wire.errors import LocalProtocolError
from headgate.wire.messages import CommandCloseProducer
from headgate.wire.varint import varint

EDGES = [0, 1, 127, 128, 16383, 16384, 2**21, 2**28 - 1, 2**28, 2**42, 2**63 - 1, 2**64 - 1]


def reference(value: int) -> bytes:
    encoded: bytes = CommandCloseProducer(producer_id=value % 2**64).SerializePartialToString()
    return encoded[1:]


@pytest.mark.parametrize("value", [*EDGES, -1, -(2**63)])
def test_edges(value: int) -> None:
    assert varint(value) == reference(value)


@given(st.integers(-(2**63), 2**64 - 1))
def test_as_generated_code(value: int) -> None:
    assert varint(value) == reference(value)


@pytest.mark.parametrize("value", [2**64, -(2**63) - 1])
def test_too_large(value: int) -> None:
    with pytest.raises(LocalProtocolError, match="64 bits"):
        varint(value)
