"""Compaction leaves fewer files with the same rows."""

from __future__ import annotations

import io
from pathlib import Path

from headgate.pipeline.progress import Progress
from headgate.pipeline.store.delta_log import (
    commit_append,
    files_added,
    table_files,
)
from headgate.pipeline.store.housekeeping.compact import compact, compact_table, crowded_partitions
from headgate.pipeline.store.housekeeping.retention import drop_before
from headgate.pipeline.store.housekeeping.vacuum import vacuum
from headgate.pipeline.store.parquet_files import write_tables
from headgate.pipeline.store.table_store import table_names
from headgate.pipeline.tables.attribution import ATTRIBUTION
from headgate.pipeline.tables.bronze import BRONZE_SAMPLES
from headgate.pipeline.tables.catalogue import TABLES
from headgate.pipeline.tables.intervals import INTERVALS
from tests.unit.pipeline.play import T0, Broker, S, bronze, play
from tests.unit.pipeline.store.housekeeping.folder import (
    bronze_rows,
    fill,
    opened,
    progress,
)
from tests.unit.pipeline.store.old_folder import old_table
from tests.unit.pipeline.store.test_delta_log import HOUR, appended, files


def test_compaction_leaves_rows_windows_and_derived_tables_as_they_are(tmp_path: Path) -> None:
    player = Broker(start_ns=T0 + 3_580 * S)
    for _ in range(4):
        written = write_tables(
            str(tmp_path), "0", [(BRONZE_SAMPLES.name, bronze(player.window(10)))]
        )
        commit_append(str(tmp_path), BRONZE_SAMPLES, written, None)
    before, seen = bronze_rows(tmp_path), opened(tmp_path, BRONZE_SAMPLES).version()
    spans = {file.hour: file.span_ns for file in table_files(opened(tmp_path, BRONZE_SAMPLES))}
    assert len(spans) == 2
    err = io.StringIO()
    assert compact(str(tmp_path), [*TABLES], Progress(err)) == 8
    assert "Compacting bronze_samples ... 16 files into 8" in err.getvalue()
    delta = opened(tmp_path, BRONZE_SAMPLES)
    assert files_added(str(tmp_path), BRONZE_SAMPLES, delta, seen) == []
    live = table_files(delta)
    assert len(live) == 2 * 4
    assert sum(file.rows for file in live) == before.num_rows
    ends = sorted({file.window_ends_ns for file in live})
    assert ends == [
        (T0 + 3_590 * S, T0 + 3_600 * S),
        (T0 + 3_610 * S, T0 + 3_620 * S),
    ]
    assert bronze_rows(tmp_path) == before
    assert compact(str(tmp_path), [*TABLES], progress()) == 0
    assert opened(tmp_path, BRONZE_SAMPLES).version() == delta.version()


def test_rows_of_a_file_stay_together_in_their_order(tmp_path: Path) -> None:
    for first in (0, 3):
        rows = [(10, first + i) for i in range(3)]
        commit_append(str(tmp_path), INTERVALS, files(tmp_path, *rows), None)
    compact(str(tmp_path), [INTERVALS.name], progress())
    found = opened(tmp_path).to_pyarrow_table()["appended"].to_pylist()
    assert sorted((found[:3], found[3:])) == [[0, 1, 2], [3, 4, 5]]


def test_only_crowded_partitions_are_compacted_on_request(tmp_path: Path) -> None:
    for values in ((9, 1), (10, 2), (10, 3), (10, 4), (11, 5), (11, 6)):
        commit_append(str(tmp_path), INTERVALS, files(tmp_path, values), None)
    assert [dict(p)["hour"] for p in crowded_partitions(opened(tmp_path), 2)] == ["10"]
    assert compact_table(str(tmp_path), INTERVALS.name, files_max=2) == (3, 1)
    assert [file.hour - HOUR for file in table_files(opened(tmp_path))].count(0) == 1
    assert appended(tmp_path) == [1, 2, 3, 4, 5, 6]


def test_files_without_a_new_column_are_compacted_with_those_that_have_it(tmp_path: Path) -> None:
    written = bronze(play(4))
    old_table(tmp_path, BRONZE_SAMPLES, ["evidence", "acked"], written)
    new = write_tables(str(tmp_path), "0", [(BRONZE_SAMPLES.name, bronze(play(4, boot="next")))])
    commit_append(str(tmp_path), BRONZE_SAMPLES, new, None)
    before = bronze_rows(tmp_path)
    assert before["evidence"].null_count == written.num_rows == before.num_rows // 2
    compact(str(tmp_path), [BRONZE_SAMPLES.name], progress())
    assert len(table_files(opened(tmp_path, BRONZE_SAMPLES))) == 4
    assert bronze_rows(tmp_path) == before


def test_a_dry_run_prints_what_compaction_and_retention_would_do(tmp_path: Path) -> None:
    fill(tmp_path, 3)
    before = opened(tmp_path).version()
    said = io.StringIO()
    assert compact(str(tmp_path), [INTERVALS.name], Progress(said), dry_run=True) == 0
    wanted = "Looking at intervals ... 3 files would become 1; files of 100 MB stay"
    assert wanted in said.getvalue()
    assert drop_before(str(tmp_path), 2, dry_run=True) == 3
    assert opened(tmp_path).version() == before


def test_a_table_without_a_version_is_skipped(tmp_path: Path) -> None:
    commit_append(str(tmp_path), INTERVALS, files(tmp_path, (9, 1)), None)
    (tmp_path / ATTRIBUTION.name / "_delta_log").mkdir(parents=True)
    (tmp_path / ".lock").touch()
    assert table_names(str(tmp_path)) == [INTERVALS.name]
    assert vacuum(str(tmp_path), 0, True) == []
