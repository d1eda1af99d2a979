"""The stored form of what changed in a set of acknowledgements."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.base.ack_changes import AckChanges, merged
from headgate.base.errors import CorruptionError
from headgate.base.partial_acks import PartialEntry

CHANGES = AckChanges(True, 3, ((5, 6),), (PartialEntry(9, 0b10, 3),))


def test_the_stored_form_is_frozen() -> None:
    data = CHANGES.to_bytes()
    assert data.hex() == (
        "01" "0300000000000000" "01000000" "01000000"
        "0500000000000000" "0600000000000000"
        "0900000000000000" "03000000" "02"
    )  # fmt: skip
    assert AckChanges.from_bytes(data) == CHANGES


@pytest.mark.parametrize("changes", [AckChanges(False, -1, ()), AckChanges(False, 7, ((9, 9),))])
def test_there_and_back_without_partly_acknowledged_entries(changes: AckChanges) -> None:
    assert AckChanges.from_bytes(changes.to_bytes()) == changes


@pytest.mark.parametrize(
    ("at", "value", "text"),
    [
        (0, 2, "1 runs above 3"),
        (1, 9, "entry 9, partly acknowledged, is out of order"),
        (8, 255, "1 runs above -"),
        (9, 9, "9 runs"),
        (13, 0, "end at byte 33 of 46"),
        (13, 2, "cut short at byte 46"),
        (45, 7, "not of some"),
    ],
)
def test_damage_is_named(at: int, value: int, text: str) -> None:
    data = bytearray(CHANGES.to_bytes())
    data[at] = value
    with pytest.raises(CorruptionError, match=text):
        AckChanges.from_bytes(bytes(data))


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 9))))
def test_merged_runs_hold_the_same_ordinals_in_the_fewest_runs(
    pairs: list[tuple[int, int]],
) -> None:
    runs = [(first, first + more) for first, more in pairs]
    ordinals = sorted({o for first, last in runs for o in range(first, last + 1)})
    found = list(merged(runs))
    assert [o for first, last in found for o in range(first, last + 1)] == ordinals
    assert len(found) == sum(o - 1 not in set(ordinals) for o in ordinals)
