from __future__ import annotations

import pytest

from headgate.base.positions import EARLIEST, LATEST, Position
from headgate.wire.ids import NO_REQUEST, message_id_of, position_of, to_signed, to_unsigned

PAIRS = [(0, 0), (1, 1), (2**63 - 1, 2**63 - 1), (-1, 2**64 - 1), (-(2**63), 2**63)]


@pytest.mark.parametrize(("signed", "unsigned"), PAIRS)
def test_both_ways(signed: int, unsigned: int) -> None:
    assert to_unsigned(signed) == unsigned
    assert to_signed(unsigned) == signed


def test_no_request_is_minus_one() -> None:
    assert to_signed(NO_REQUEST) == -1


@pytest.mark.parametrize("position", [EARLIEST, LATEST, Position(7, 0)])
def test_positions_survive(position: Position) -> None:
    assert position_of(message_id_of(position)) == position


def test_defaults_are_left_out() -> None:
    plain = message_id_of(Position(1, 2))
    assert not plain.HasField("partition")
    assert not plain.HasField("batch_index")
    full = message_id_of(Position(1, 2), partition=0, batch_index=0)
    assert full.HasField("partition")
    assert full.HasField("batch_index")
