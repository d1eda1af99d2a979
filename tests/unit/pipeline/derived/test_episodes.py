"""Episodes are recomputed where they may have begun, continued or ended."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headgate.pipeline.derived.episodes import Episodes, ends_ns
from headgate.pipeline.store.table_store import store_of
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


def test_how_far_verdicts_reach_is_read_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headgate.pipeline.store.table_store.BATCH_ROWS", 2)
    (tmp_path / "attribution").mkdir()
    rows = pa.table({"cluster": ["a", "b", "a", None, "b", "a"], "to_ns": [5, 3, 9, 4, 2, 7]})
    pq.write_table(rows, tmp_path / "attribution" / "part")
    assert ends_ns(store_of(str(tmp_path)), "part") == {"a": 9, "b": 3, None: 4}
