"""Lines of a bounded size, of which no owner takes the place of one that has less."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headgate.agent.fair_lines import FairLines, Owner

A, B, C = Owner("x", "a"), Owner("x", "b"), Owner("y", "a")


def test_beyond_a_number_the_owner_with_most_loses_its_last() -> None:
    lines = FairLines(4, 1_000)
    for owner, text in ((A, "1"), (A, "2"), (A, "3"), (A, "4"), (A, "5"), (B, "6"), (C, "7")):
        lines.add(owner, text)
    assert list(lines) == [(A, "1"), (A, "2"), (B, "6"), (C, "7")]
    assert lines.left_out == {"x": 3}


def test_beyond_a_size_too_in_bytes() -> None:
    lines = FairLines(100, 8)
    for owner, text in ((A, "\u00e4\u00e4"), (A, "\u00e4"), (A, "12"), (A, "3"), (B, "4444")):
        lines.add(owner, text)
    assert list(lines) == [(A, "\u00e4\u00e4"), (B, "4444")]
    assert lines.left_out == {"x": 3}


@given(
    st.lists(st.tuples(st.sampled_from([A, B, C]), st.integers(1, 9)), max_size=60),
    st.integers(0, 12), st.integers(0, 40),
)  # fmt: skip
def test_the_bounds_hold_and_all_are_counted(
    added: list[tuple[Owner, int]], texts_max: int, bytes_max: int
) -> None:
    lines = FairLines(texts_max, bytes_max)
    for owner, size in added:
        lines.add(owner, "x" * size)
    found = list(lines)
    assert len(found) <= texts_max
    assert sum(len(text) for _, text in found) <= bytes_max
    assert len(found) + lines.left_out.total() == len(added)
