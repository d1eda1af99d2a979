"""How many messages no consumer has."""

from __future__ import annotations

from dataclasses import replace

from headgate.agent.looks import ConsumerLook, CursorLook, ProofLook
from headgate.agent.undelivered import Undelivered
from tests.unit.agent.scenario import EMPTY

ONE = ConsumerLook("a", "", "", 10, 0, False, 30, 1.0)


def _bounds(found: Undelivered) -> tuple[float, float]:
    return found.least, found.most


def test_where_the_broker_counts_it_is_exact() -> None:
    found = Undelivered()
    found.note(replace(EMPTY, unacked=20), 50, 1.0, None)
    assert _bounds(found) == (30, 30)
    found.note(replace(EMPTY, unacked=20), 50, 1.0, -999)
    assert _bounds(found) == (30, 30)


def test_the_size_of_batches_is_a_mean() -> None:
    found = Undelivered()
    found.note(replace(EMPTY, unacked=20), 50, 10.0, None)
    assert _bounds(found) == (25, 35)


def test_otherwise_it_lies_between_bounds() -> None:
    """The consumer got 30 messages in all, so at least 20 of 50 are not with it."""
    found, look = Undelivered(), replace(EMPTY, type="Exclusive", consumers=(ONE,))
    found.note(look, 50, 1.0, None)
    assert _bounds(found) == (20, 50)
    found.note(look, 60, 1.0, 10)
    assert _bounds(found) == (30, 60)
    # All that waits went out at some time: then both bounds are known.
    found.note(look, 5, 1.0, -60)
    assert _bounds(found) == (0, 0)
    found.note(look, 40, 1.0, 25)
    assert _bounds(found) == (25, 25)


def test_a_read_position_proves_it() -> None:
    look = replace(EMPTY, type="Exclusive", consumers=(replace(ONE, sent=100),))
    found = Undelivered()
    cursor = CursorLook("s", (7, 40), None, 0, False, False, False)

    def prove(read: tuple[int, int] | None, last: tuple[int, int]) -> tuple[float, float]:
        found.note(look, 50, 1.0, None)
        proof = ProofLook("t", 0, last, None, ())
        found.prove(proof, replace(cursor, read_position=read), 50, 1.0)
        return _bounds(found)

    assert prove((7, 50), (7, 49)) == (0, 0)
    assert prove((7, 40), (7, 49)) == (10, 10)
    assert prove((6, 40), (7, 49)) == (1, 50)
    assert prove(None, (7, 49)) == (0, 50)
