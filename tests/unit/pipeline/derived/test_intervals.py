"""Intervals near an hour's edge and across coverage gaps follow from both sides."""

from __future__ import annotations

from pathlib import Path

from headgate.pipeline.derived.intervals import Intervals
from headgate.pipeline.store.delta_log import TableFile, commit_append, ensure_table, table_files
from headgate.pipeline.store.parquet_files import write_tables
from headgate.pipeline.tables.bronze import BRONZE_SAMPLES
from headgate.pipeline.tables.columns import HOUR_NS
from headgate.pipeline.tables.touched_minutes import TouchedMinutes
from tests.unit.pipeline.derived.source_files import HOUR, Live, file, is_input
from tests.unit.pipeline.derived.source_files import touched as touched_by
from tests.unit.pipeline.play import SITUATIONS, T0, Broker, bronze


def test_intervals_near_an_hour_s_edge_follow_from_both_sides(tmp_path: Path) -> None:
    found = touched_by(Intervals(), [file(HOUR)], [], str(tmp_path))
    assert set(found) == {HOUR - 1, HOUR, HOUR + 1}


def test_the_size_of_the_work_is_that_of_the_samples_near_it() -> None:
    """Not that of a day of bronze around the hour, in which a gap may begin or end."""
    live = [file(HOUR + ahead, kind) for ahead in range(-24, 25) for kind in ("topic", "batch")]
    intervals = Intervals()
    for minutes, hours in ((range(30, 33), {0}), (range(60), {-1, 0, 1})):
        asked = TouchedMinutes({HOUR: minutes})
        inputs = intervals.inputs(Live(live), asked)
        assert len(inputs) == len(live)
        found = intervals.read_for("", inputs, asked)
        assert {each.hour - HOUR for each in found} == hours
        assert {each.partition["kind"] for each in found} == {"topic"}


def appended(root: Path, *messages: bytes) -> list[TableFile]:
    """Files of some telemetry that was appended to bronze."""
    before = {found.path for found in table_files(ensure_table(str(root), BRONZE_SAMPLES))}
    written = write_tables(str(root), "0", [(BRONZE_SAMPLES.name, bronze(list(messages)))])
    commit_append(str(root), BRONZE_SAMPLES, written, None)
    after = table_files(ensure_table(str(root), BRONZE_SAMPLES))
    return [found for found in after if found.path not in before]


def test_all_hours_of_a_gap_follow_from_its_ends(tmp_path: Path) -> None:
    player = Broker(SITUATIONS[:1])
    root, intervals = str(tmp_path), Intervals()
    start = T0 // HOUR_NS
    minutes_ = [m for _ in range(5 * 60) for m in player.window(60)]

    def touched(*minutes: int) -> set[int]:
        new = appended(tmp_path, *(minutes_[at] for at in minutes))
        live = table_files(ensure_table(root, BRONZE_SAMPLES))
        return {hour - start for hour in touched_by(intervals, new, live, root)}

    assert touched(10) == {0}
    assert touched(280) == {0, 1, 2, 3, 4}
    assert touched(281, 282) == {4}
    # Late: each of both parts of the silence is another one now.
    assert touched(130) == {0, 1, 2, 3, 4}
    assert touched(11) == {0, 1, 2}
    assert touched(9) == {0}
    inputs = table_files(ensure_table(root, BRONZE_SAMPLES))
    assert all(is_input(intervals, found, {start + 2}) for found in inputs)
    assert not any(is_input(intervals, found, {start + 29}) for found in inputs)
