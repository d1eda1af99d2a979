"""A counter that keeps no zeros."""

from __future__ import annotations

from headgate.base.sparse_counter import SparseCounter


def test_a_key_leaves_when_its_count_becomes_0() -> None:
    counts: SparseCounter[str] = SparseCounter()
    counts["a"] += 2
    counts["b"] -= 1
    assert dict(counts) == {"a": 2, "b": -1}
    counts["a"] -= 2
    counts["b"] += 1
    counts["never"] += 0
    assert not counts


def test_what_is_absent_counts_0_and_is_not_kept() -> None:
    counts: SparseCounter[str] = SparseCounter()
    assert counts["a"] == 0
    assert "a" not in counts
