"""AckSet against a plain Python set."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.base.ack_set import AckChanges, AckSet
from headgate.base.errors import CorruptionError, InputError

END = 20_000
ordinals = st.one_of(st.integers(0, 40), st.integers(0, END - 1), st.integers(4080, 4110))
steps = st.lists(
    st.one_of(
        st.tuples(st.just("ack"), ordinals, ordinals),
        st.tuples(st.just("range"), ordinals, ordinals),
        st.tuples(st.just("through"), ordinals, ordinals),
        st.tuples(st.just("reset"), ordinals, ordinals),
        st.tuples(st.just("take"), ordinals, ordinals),
    ),
    max_size=40,
)


def marked(model: set[int]) -> int:
    """The mark-delete ordinal that a plain set implies."""
    mark = -1
    while mark + 1 in model:
        mark += 1
    return mark


def do(acks: AckSet, model: set[int], step: tuple[str, int, int]) -> None:
    kind, one, two = step
    low, high = min(one, two), max(one, two)
    before = len(model)
    if kind == "ack":
        model.add(one)
        assert acks.ack(one) is (len(model) > before)
    elif kind == "range":
        model.update(range(low, high + 1))
        assert acks.ack_range(low, high) == len(model) - before
    elif kind == "through":
        model.update(range(one + 1))
        assert acks.ack_through(one) == len(model) - before
    elif kind == "reset":
        model.clear()
        model.update(range(one))
        acks.reset(one - 1)


def same(acks: AckSet, model: set[int]) -> None:
    mark = marked(model)
    assert acks.mark_delete == mark
    above = sorted(o for o in model if o > mark)
    assert acks.holes_count == len(above)
    assert acks.runs_count == len(list(acks.acked_runs()))
    assert [o for a, b in acks.acked_runs() for o in range(a, b + 1)] == above
    runs = list(acks.acked_runs())
    assert all(b + 1 < c for (_, b), (c, _) in pairwise(runs))


@given(steps)
def test_agrees_with_a_plain_set(work: list[tuple[str, int, int]]) -> None:
    acks, model = AckSet(), set[int]()
    replica = AckSet()
    for step in work:
        do(acks, model, step)
        same(acks, model)
        if step[0] == "take":
            changes = acks.take_changes()
            if changes is not None:
                replica.apply(AckChanges.from_bytes(changes.to_bytes()))
            same(replica, model)
            assert not acks.has_changes()
            assert not replica.has_changes()
        at, end = step[1], step[2]
        expected = next((o for o in range(at, end) if o not in model), end) if at < end else end
        assert acks.next_unacked(at, end) == expected
        run_end = expected
        while run_end < min(end, expected + 7) and run_end not in model:
            run_end += 1
        assert acks.unacked_run(at, end, 7) == (expected, run_end)
        assert acks.is_acked(at) is (at in model)
        below = [ordinal for ordinal in model if acks.mark_delete < ordinal < end]
        assert acks.holes_below(end) == len(below)
        found = [o for a, b in acks.acked_runs(end) for o in range(a, b + 1)]
        assert found == sorted(below)
    same(AckSet.from_bytes(acks.to_bytes()), model)


@given(steps, st.integers(0, 39))
def test_changes_applied_to_a_later_state_end_the_same(
    work: list[tuple[str, int, int]], seen: int
) -> None:
    """A checkpoint may hold some of the changes that replay then applies again."""
    acks, model = AckSet(), set[int]()
    log: list[AckChanges] = []
    snapshot = acks.to_bytes()
    for at, step in enumerate(work):
        do(acks, model, step)
        changes = acks.take_changes()
        if changes is not None:
            log.append(changes)
        if at == seen:
            snapshot = acks.to_bytes()
    recovered = AckSet.from_bytes(snapshot)
    for changes in log:
        recovered.apply(changes)
    same(recovered, model)


def test_starts_at_the_given_mark() -> None:
    acks = AckSet(9)
    assert acks.mark_delete == 9
    assert acks.is_acked(9)
    assert not acks.is_acked(10)
    assert acks.take_changes() is None


def test_changes_are_the_fewest_runs() -> None:
    acks = AckSet()
    for ordinal in (9, 5, 6, 7, 3, 8, 6):
        acks.ack(ordinal)
    acks.ack_range(20, 22)
    changes = acks.take_changes()
    assert changes == AckChanges(False, -1, ((3, 3), (5, 9), (20, 22)))
    acks.ack_through(6)
    assert acks.take_changes() == AckChanges(False, 9, ())


def test_a_million_ordinals_with_alternating_holes_stay_small() -> None:
    tracemalloc.start()
    acks = AckSet()
    for ordinal in range(1, 400_001, 2):
        acks.ack(ordinal)
    acks.take_changes()
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert acks.holes_count == 200_000
    assert size < 1 << 20
    assert acks.next_unacked(0, 400_000) == 0
    assert acks.ack_through(399_999) == 200_000
    assert acks.mark_delete == 399_999 + 0
    assert acks.holes_count == 0


@pytest.mark.parametrize("mark", [-2, -100])
def test_a_mark_below_minus_one_is_refused(mark: int) -> None:
    with pytest.raises(InputError, match="mark_delete"):
        AckSet(mark)
    with pytest.raises(InputError, match="mark_delete"):
        AckSet().reset(mark)


@pytest.mark.parametrize("cut", [1, 5, 20])
def test_damaged_bytes_are_refused(cut: int) -> None:
    acks = AckSet(3)
    acks.ack(9)
    whole = acks.to_bytes()
    changes = acks.take_changes()
    assert changes is not None
    with pytest.raises(CorruptionError):
        AckSet.from_bytes(whole[:-cut])
    with pytest.raises(CorruptionError):
        AckChanges.from_bytes(changes.to_bytes()[:-cut])
