"""Episodes are recomputed where they may have begun, continued or ended."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from headgate.pipeline.derived.episodes import Episodes
from tests.unit.pipeline.derived.source_files import file, is_input
from tests.unit.pipeline.derived.source_files import touched as touched_by


@given(st.sets(st.integers(0, 12), min_size=1), st.sets(st.integers(0, 12)), st.integers(0, 12))
@example({9}, {4, 5}, 4)
@example({9}, {4, 5}, 5)
def test_episodes_are_recomputed_where_neighbours_or_newer_telemetry_changed(
    new: set[int], old: set[int], hour: int
) -> None:
    derivation = Episodes()
    there = new | old
    touched = set(
        touched_by(derivation, [file(h, None) for h in new], [file(h, None) for h in there])
    )
    assert touched <= there
    is_beside = any(abs(hour - h) <= 1 for h in new)
    # Whether anything newer than the next hour is there decides of what was open.
    went_on = max(there) > hour + 1 and max(old - new, default=-1) <= hour + 1
    if hour in there and (is_beside or went_on):
        assert hour in touched
    inputs = {h for h in there if is_input(derivation, file(h, None), {hour})}
    assert inputs == there & {hour - 1, hour, hour + 1}
