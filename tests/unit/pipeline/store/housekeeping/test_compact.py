"""Compaction leaves fewer files with the same rows."""

from __future__ import annotations

import io
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake.schema import Schema

from headgate.pipeline.progress import Progress
from headgate.pipeline.store.delta_log import (
    commit_append,
    table_files,
)
from headgate.pipeline.store.housekeeping import compact as module
from headgate.pipeline.store.housekeeping.compact import Compacted, compact, compact_table
from headgate.pipeline.store.housekeeping.retention import drop_before
from headgate.pipeline.store.housekeeping.small_files import CompactionLimits
from headgate.pipeline.store.housekeeping.vacuum import vacuum
from headgate.pipeline.store.parquet_files import write_tables
from headgate.pipeline.store.table_store import TableStore, store_of, table_names
from headgate.pipeline.tables.arrow_types import table_arrow_schema
from headgate.pipeline.tables.attribution import ATTRIBUTION
from headgate.pipeline.tables.bronze import BRONZE_SAMPLES
from headgate.pipeline.tables.catalogue import TABLES
from headgate.pipeline.tables.intervals import INTERVALS
from tests.unit.pipeline.play import T0, Broker, S, bronze, play
from tests.unit.pipeline.store.added_files import files_added
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
    sizes = [file.size_bytes for file in table_files(opened(tmp_path)) if file.hour == HOUR]
    done = compact_table(str(tmp_path), INTERVALS.name, CompactionLimits(files_max=2))
    assert done == Compacted(3, 1, sum(sizes))
    assert [file.hour - HOUR for file in table_files(opened(tmp_path))].count(0) == 1
    assert appended(tmp_path) == [1, 2, 3, 4, 5, 6]


def test_large_work_is_several_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for hour in (9, 10, 11):
        for value in range(2):
            commit_append(str(tmp_path), INTERVALS, files(tmp_path, (hour, value)), None)
    version = opened(tmp_path).version()
    monkeypatch.setattr(module, "COMMIT_BYTES_MAX", 1)
    assert compact(str(tmp_path), [INTERVALS.name], progress()) == 3
    assert opened(tmp_path).version() == version + 3
    assert appended(tmp_path) == [0, 0, 0, 1, 1, 1]


def test_a_failure_leaves_no_files_and_no_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for hour in (9, 9, 10, 10):
        commit_append(str(tmp_path), INTERVALS, files(tmp_path, (hour, 1)), None)
    before, version = sorted(tmp_path.rglob("*.parquet")), opened(tmp_path).version()
    store, reads = store_of(str(tmp_path)), 0

    class Failing(TableStore):
        def dataset(self, *asked: Any) -> Any:
            nonlocal reads
            reads += 1
            if reads == 2:
                raise OSError(28, "No space left on device")
            return super().dataset(*asked)

    failing = Failing(store.root, store.files, store.folder, None)
    monkeypatch.setattr(module, "store_of", lambda _: failing)
    with pytest.raises(OSError, match="No space left"):
        compact_table(str(tmp_path), INTERVALS.name)
    assert sorted(tmp_path.rglob("*.parquet")) == before
    assert opened(tmp_path).version() == version


KILLED = """
import os, signal, sys
from headgate.pipeline.store.housekeeping import compact
compact.commit_rewritten = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
compact.compact_table(sys.argv[1], "intervals")
"""


def test_a_compaction_that_is_killed_before_its_commit_loses_and_doubles_nothing(
    tmp_path: Path,
) -> None:
    for value in (1, 2):
        commit_append(str(tmp_path), INTERVALS, files(tmp_path, (10, value)), None)
    before = {*tmp_path.rglob("*.parquet")}
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL
    (orphan,) = {*tmp_path.rglob("*.parquet")} - before
    assert appended(tmp_path) == [1, 2]
    assert compact(str(tmp_path), [INTERVALS.name], progress()) == 1
    assert appended(tmp_path) == [1, 2]
    vacuum(str(tmp_path), 0, False)
    assert not orphan.exists()
    assert appended(tmp_path) == [1, 2]


def test_a_column_of_a_later_release_stays(tmp_path: Path) -> None:
    commit_append(str(tmp_path), INTERVALS, files(tmp_path, (10, 1)), None)
    later = pa.schema([*table_arrow_schema(INTERVALS), pa.field("added_later", pa.int64())])
    opened(tmp_path).alter.add_columns(
        Schema.from_arrow(pa.schema([later.field("added_later")])).fields
    )
    (old,) = files(tmp_path, (10, 2))
    path = tmp_path / INTERVALS.name / old.path
    rows = pq.ParquetFile(path).read()
    pq.write_table(rows.append_column("added_later", pa.array([7])), path)
    commit_append(str(tmp_path), INTERVALS, [old], None)
    compact(str(tmp_path), [INTERVALS.name], progress())
    assert len(table_files(opened(tmp_path))) == 1
    assert sorted(opened(tmp_path).to_pyarrow_table()["added_later"].to_pylist(), key=str) == [
        7,
        None,
    ]


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
    wanted = "Looking at intervals ... 3 files would become 1; files of 64 MiB stay"
    assert wanted in said.getvalue()
    assert drop_before(str(tmp_path), 2, dry_run=True) == 3
    assert opened(tmp_path).version() == before


def test_a_table_without_a_version_is_skipped(tmp_path: Path) -> None:
    commit_append(str(tmp_path), INTERVALS, files(tmp_path, (9, 1)), None)
    (tmp_path / ATTRIBUTION.name / "_delta_log").mkdir(parents=True)
    (tmp_path / ".lock").touch()
    assert table_names(str(tmp_path)) == [INTERVALS.name]
    assert vacuum(str(tmp_path), 0, True) == []
