"""Verdicts follow from the hours of the day before."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headgate.pipeline.derived.attribution import Attribution
from tests.unit.pipeline.derived.source_files import HOUR, file, is_input


def test_verdicts_follow_from_the_day_before() -> None:
    derivation = Attribution()
    live = [file(HOUR + ahead) for ahead in (-1, 0, 1, 24, 25)]
    assert derivation.touched("", [file(HOUR)], live) == {HOUR, HOUR + 1, HOUR + 24}
    needed = [
        f.hour for f in map(file, range(HOUR - 30, HOUR + 3)) if is_input(derivation, f, {HOUR})
    ]
    assert needed == list(range(HOUR - 24, HOUR + 1))
    assert not is_input(derivation, file(HOUR, "topic"), {HOUR})


@given(st.sets(st.integers(0, 120)), st.sets(st.integers(0, 120)), st.integers(0, 120))
def test_hours_touched_by_a_new_hour_are_recomputed_from_all_inputs(
    new: set[int], old: set[int], hour: int
) -> None:
    derivation = Attribution()
    live = [file(h) for h in new | old]
    touched = derivation.touched("", [file(h) for h in new], live)
    changes = any(is_input(derivation, file(h), {hour}) for h in new)
    assert (hour in touched) == (changes and hour in new | old)
