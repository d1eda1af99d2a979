"""Fewer files, no dead ones, a short log, retention: and every row as it was."""

from __future__ import annotations

import dataclasses
import io
import os
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from headgate.base.errors import InputError
from headgate.pipeline.progress import Progress
from headgate.pipeline.store.delta_log import (
    AppTransaction,
    commit_append,
    commit_replace,
    ensure_table,
    files_added,
    kept_from_hour,
    source_key,
    table_files,
)
from headgate.pipeline.store.housekeeping import compact as module
from headgate.pipeline.store.housekeeping.compact import (
    VERSIONS_KEPT,
    clean_log,
    compact,
    compact_table,
    crowded,
    drop_before,
    table_names,
    vacuum,
)
from headgate.pipeline.store.lock_tokens import LockLostError
from headgate.pipeline.store.parquet_files import write_tables
from headgate.pipeline.store.table_store import store_of
from headgate.pipeline.tables.attribution import ATTRIBUTION
from headgate.pipeline.tables.bronze import BRONZE_SAMPLES
from headgate.pipeline.tables.catalogue import TABLES
from headgate.pipeline.tables.columns import HOUR_NS, Table
from headgate.pipeline.tables.intervals import INTERVALS
from tests.unit.pipeline.play import T0, Broker, S, bronze, play
from tests.unit.pipeline.store.old_folder import old_table
from tests.unit.pipeline.store.test_delta_log import HOUR, appended, files


def progress() -> Progress:
    return Progress(io.StringIO())


def opened(root: Path, table: Table = INTERVALS) -> DeltaTable:
    return DeltaTable(root / table.name)


def log_names(root: Path) -> list[str]:
    return sorted(file.name for file in (root / INTERVALS.name / "_delta_log").iterdir())


def bronze_rows(root: Path) -> pa.Table:
    rows = opened(root, BRONZE_SAMPLES).to_pyarrow_table()
    keys = ("kind", "source", "boot_id", "seq", "row")
    return rows.sort_by([(name, "ascending") for name in keys])


def fill(root: Path, count: int) -> None:
    """So many commits with one row each, in one partition."""
    for i in range(count):
        commit_append(str(root), INTERVALS, files(root, (10, i)), None)


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


def test_only_crowded_partitions_are_compacted_where_that_is_asked(tmp_path: Path) -> None:
    for values in ((9, 1), (10, 2), (10, 3), (10, 4), (11, 5), (11, 6)):
        commit_append(str(tmp_path), INTERVALS, files(tmp_path, values), None)
    assert [dict(p)["hour"] for p in crowded(opened(tmp_path), 2)] == ["10"]
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


def old_file(root: Path, path: str, hours: float) -> Path:
    """Make a file of ``intervals`` look so old."""
    file = root / INTERVALS.name / path
    at = file.stat().st_mtime - hours * 3_600
    os.utime(file, (at, at))
    return file


def test_vacuum_finds_orphans_of_killed_runs_and_leaves_what_is_young(tmp_path: Path) -> None:
    fill(tmp_path, 2)
    orphan = old_file(tmp_path, files(tmp_path, (10, 98))[0].path, 9)
    young = tmp_path / INTERVALS.name / files(tmp_path, (10, 99))[0].path
    # Old when it was written, dead for a moment only: somebody may be reading it.
    (live,) = (f.path for f in table_files(opened(tmp_path))[:1])
    just_removed = old_file(tmp_path, live, 9)
    commit_replace(str(tmp_path), INTERVALS, files(tmp_path, (10, 5)), [HOUR], None)
    for _ in range(VERSIONS_KEPT):
        commit_append(str(tmp_path), INTERVALS, [], AppTransaction(f"{_}", 1))
    name = f"{INTERVALS.name}/{orphan.relative_to(tmp_path / INTERVALS.name)}"
    assert vacuum(str(tmp_path), 8, True) == [name]
    assert orphan.exists()
    assert vacuum(str(tmp_path), 8, False) == [name]
    assert (orphan.exists(), young.exists(), just_removed.exists()) == (False, True, True)
    assert len(vacuum(str(tmp_path), 0, False)) == 3
    assert (young.exists(), just_removed.exists()) == (False, False)
    assert appended(tmp_path) == [5]


def test_vacuum_looks_at_the_hold_again_before_each_batch_of_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path, 1)
    orphans = [old_file(tmp_path, files(tmp_path, (10, i))[0].path, 9) for i in range(5)]
    looks: list[int] = []

    def check_held(_: str) -> None:
        looks.append(sum(orphan.exists() for orphan in orphans))
        if len(looks) == 4:
            raise LockLostError("taken over")

    monkeypatch.setattr(module, "DELETED_AT_ONCE", 2)
    monkeypatch.setattr(module, "check_held", check_held)
    with pytest.raises(LockLostError):
        vacuum(str(tmp_path), 1, False)
    assert looks == [5, 5, 3, 1]


def test_in_a_bucket_a_file_that_no_version_has_is_left_for_an_hour(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path, 1)
    old = old_file(tmp_path, files(tmp_path, (10, 98))[0].path, 2)
    young = old_file(tmp_path, files(tmp_path, (10, 99))[0].path, 0.5)
    (replaced,) = (f.path for f in table_files(opened(tmp_path)))
    for i in range(VERSIONS_KEPT + 1):
        commit_replace(str(tmp_path), INTERVALS, files(tmp_path, (10, i)), [HOUR], None)
    bucket = dataclasses.replace(store_of(str(tmp_path)), storage_options={})
    monkeypatch.setattr(module, "store_of", lambda _: bucket)
    found = {Path(path).name for path in vacuum(str(tmp_path), 0, True)}
    assert {old.name, Path(replaced).name} <= found
    assert young.name not in found


def test_a_dry_run_tells_what_compaction_and_retention_would_do(tmp_path: Path) -> None:
    fill(tmp_path, 3)
    before = opened(tmp_path).version()
    said = io.StringIO()
    assert compact(str(tmp_path), [INTERVALS.name], Progress(said), dry_run=True) == 0
    wanted = "Looking at intervals ... 3 files would become 1; files of 100 MB stay"
    assert wanted in said.getvalue()
    assert drop_before(str(tmp_path), 2, dry_run=True) == 3
    assert opened(tmp_path).version() == before


def test_vacuum_leaves_the_last_versions_readable(tmp_path: Path) -> None:
    for i in range(VERSIONS_KEPT + 5):
        commit_replace(str(tmp_path), INTERVALS, files(tmp_path, (10, i)), [HOUR], None)
    last = opened(tmp_path).version()
    vacuum(str(tmp_path), 0, False)
    for version in range(last - VERSIONS_KEPT + 1, last + 1):
        delta = DeltaTable(tmp_path / INTERVALS.name, version=version)
        assert delta.to_pyarrow_table()["appended"].to_pylist() == [version - 1]
    gone = DeltaTable(tmp_path / INTERVALS.name, version=last - VERSIONS_KEPT)
    with pytest.raises(FileNotFoundError):
        gone.to_pyarrow_table()


def test_a_reader_that_has_opened_a_version_reads_it_on(tmp_path: Path) -> None:
    fill(tmp_path, 5)
    reader = opened(tmp_path)
    compact(str(tmp_path), [INTERVALS.name], progress())
    vacuum(str(tmp_path), 1, False)
    assert sorted(reader.to_pyarrow_table()["appended"].to_pylist()) == [0, 1, 2, 3, 4]


def test_vacuum_takes_away_folders_that_are_empty(tmp_path: Path) -> None:
    commit_append(str(tmp_path), INTERVALS, files(tmp_path, (9, 1), (10, 2)), None)
    for i in range(VERSIONS_KEPT + 1):
        commit_replace(str(tmp_path), INTERVALS, [], [HOUR - 1], AppTransaction("a", i))
    vacuum(str(tmp_path), 0, False)
    folders = {path.name for path in (tmp_path / INTERVALS.name / "date=2025-11-21").iterdir()}
    assert folders == {"hour=10"}


def test_negative_times_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="retain_hours is -1"):
        vacuum(str(tmp_path), -1, True)
    with pytest.raises(InputError, match="retention is 1 days; at least 2 are needed"):
        drop_before(str(tmp_path), 1)


def test_retention_drops_whole_hours_and_says_so(tmp_path: Path) -> None:
    root = str(tmp_path)
    commit_append(root, INTERVALS, files(tmp_path, (9, 1), (10, 2), (11, 3)), None)
    ensure_table(root, ATTRIBUTION)
    now_ns = (HOUR + 48) * HOUR_NS + 5
    seen = opened(tmp_path).version()
    assert drop_before(root, 2, now_ns=now_ns) == 1
    assert appended(tmp_path) == [2, 3]
    assert kept_from_hour(opened(tmp_path)) == HOUR
    assert kept_from_hour(opened(tmp_path, ATTRIBUTION)) is None
    assert files_added(str(tmp_path), INTERVALS, opened(tmp_path), seen) == []
    assert drop_before(root, 2, now_ns=now_ns) == 0
    assert drop_before(root, 2, now_ns=now_ns + HOUR_NS) == 1
    assert (appended(tmp_path), kept_from_hour(opened(tmp_path))) == ([3], HOUR + 1)


def test_what_comes_late_for_a_dropped_hour_goes_the_next_time(tmp_path: Path) -> None:
    """Also where retention is longer by then, and the next time is the same hour."""
    root = str(tmp_path)
    commit_append(root, INTERVALS, files(tmp_path, (9, 1), (10, 2)), None)
    now_ns = (HOUR + 48) * HOUR_NS + 5
    for days in (2, 2, 30):
        commit_append(root, INTERVALS, files(tmp_path, (9, 1)), None)
        assert drop_before(root, days, now_ns=now_ns) > 0
        assert (appended(tmp_path), kept_from_hour(opened(tmp_path))) == ([2], HOUR)


def test_a_table_that_was_only_begun_is_none(tmp_path: Path) -> None:
    commit_append(str(tmp_path), INTERVALS, files(tmp_path, (9, 1)), None)
    (tmp_path / ATTRIBUTION.name / "_delta_log").mkdir(parents=True)
    (tmp_path / ".lock").touch()
    assert table_names(str(tmp_path)) == [INTERVALS.name]
    assert vacuum(str(tmp_path), 0, True) == []


def test_retention_leaves_tables_that_have_no_hours(tmp_path: Path) -> None:
    schema = pa.schema([("run_id", pa.string()), ("score", pa.float64())])
    DeltaTable.create(tmp_path / "policy_backtest", schema, partition_by=["run_id"])
    assert drop_before(str(tmp_path), 2) == 0
    assert DeltaTable(tmp_path / "policy_backtest").version() == 0


def filled_with_checkpoints(root: Path) -> None:
    """25 versions after the first, with checkpoints of the 10th and the 20th."""
    for count in (10, 10, 5):
        fill(root, count)
        if count == 10:
            opened(root).create_checkpoint()


def test_the_log_is_shortened_at_a_checkpoint(tmp_path: Path) -> None:
    filled_with_checkpoints(tmp_path)
    assert clean_log(str(tmp_path), INTERVALS.name, versions_kept=25) == 0
    assert clean_log(str(tmp_path), INTERVALS.name, versions_kept=16) == 0
    assert clean_log(str(tmp_path), INTERVALS.name, versions_kept=10) == 10
    assert log_names(tmp_path)[0] == f"{10:020d}.checkpoint.parquet"
    assert DeltaTable(tmp_path / INTERVALS.name, version=10).version() == 10
    assert len(appended(tmp_path)) == 25
    assert clean_log(str(tmp_path), INTERVALS.name, versions_kept=10) == 0
    assert clean_log(str(tmp_path), INTERVALS.name, versions_kept=5) == 11
    fill(tmp_path, 1)
    assert vacuum(str(tmp_path), 0, False) == []
    assert len(appended(tmp_path)) == 26


def test_a_checkpoint_is_made_now_and_then_by_itself(tmp_path: Path) -> None:
    for i in range(100):
        commit_append(str(tmp_path), INTERVALS, [], AppTransaction("a", i))
    assert any("checkpoint.parquet" in name for name in log_names(tmp_path))


def test_the_log_is_kept_for_tables_that_have_yet_to_read_it(tmp_path: Path) -> None:
    root = str(tmp_path)
    filled_with_checkpoints(tmp_path)
    key = source_key(opened(tmp_path))
    commit_append(root, ATTRIBUTION, [], AppTransaction(key, 9))
    assert clean_log(root, INTERVALS.name, versions_kept=1) == 0
    assert len(files_added(str(tmp_path), INTERVALS, opened(tmp_path), 9)) == 25 - 9
    commit_append(root, ATTRIBUTION, [], AppTransaction(key, 19))
    assert clean_log(root, INTERVALS.name, versions_kept=1) == 10
    assert len(files_added(str(tmp_path), INTERVALS, opened(tmp_path), 19)) == 25 - 19
    # One that has seen nothing reads all live files anyway.
    assert len(files_added(str(tmp_path), INTERVALS, opened(tmp_path), None)) == 25
