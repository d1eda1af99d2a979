"""Which minutes changed since a version, as derived tables ask."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from headgate.pipeline.store import log_changes as module
from headgate.pipeline.store.delta_log import (
    AppTransaction,
    commit_append,
    commit_replace,
    ensure_table,
)
from headgate.pipeline.store.housekeeping.compact import compact_table
from headgate.pipeline.store.log_changes import change_since, followed
from headgate.pipeline.store.parquet_files import FileAdded, write_tables
from headgate.pipeline.tables.arrow_types import (
    TIMESTAMP,
    conform,
    partition_columns,
    table_arrow_schema,
)
from headgate.pipeline.tables.bronze import BRONZE_SAMPLES
from headgate.pipeline.tables.columns import HOUR_NS, MINUTE_NS
from headgate.pipeline.tables.intervals import INTERVALS
from headgate.pipeline.tables.touched_minutes import TouchedMinutes
from tests.unit.pipeline.play import T0, bronze, play
from tests.unit.pipeline.store.test_delta_log import Beside

HOUR = T0 // HOUR_NS


def minute_files(root: Path, minutes: range, value: int, *, split: bool = True) -> list[FileAdded]:
    """Files of ``intervals`` with a row for each minute of the hour."""
    starts = [HOUR * HOUR_NS + minute * MINUTE_NS for minute in minutes]
    columns = {
        **partition_columns(pa.array(starts, pa.int64()).to_numpy()),
        "kind": pa.array(["topic"] * len(starts)),
        "minute": pa.array([at // 1_000 for at in starts]).cast(TIMESTAMP),
        "appended": pa.array([value] * len(starts)),
    }
    rows = conform(columns, table_arrow_schema(INTERVALS), len(starts))
    return write_tables(str(root), "0", [(INTERVALS.name, rows)], {HOUR} if split else ())


def values(root: Path) -> dict[int, int]:
    """``appended`` by minute."""
    rows = DeltaTable(root / INTERVALS.name).to_pyarrow_table(columns=["minute", "appended"])
    found = {row["minute"].minute: row["appended"] for row in rows.to_pylist()}
    assert len(found) == rows.num_rows
    return found


def changed(root: Path, since: int | None) -> TouchedMinutes:
    log = followed(str(root), INTERVALS.name)
    return change_since(str(root), INTERVALS.name, since, log.version, log.files).minutes


def test_a_replacement_of_minutes_leaves_the_files_of_others(tmp_path: Path) -> None:
    root = str(tmp_path)
    commit_append(root, INTERVALS, minute_files(tmp_path, range(10), 1), None)
    before = {file.path for file in followed(root, INTERVALS.name).files()}
    touched = TouchedMinutes({HOUR: range(8, 12)})
    assert commit_replace(root, INTERVALS, minute_files(tmp_path, range(8, 11), 2), touched, None)
    after = {file.path for file in followed(root, INTERVALS.name).files()}
    assert (len(before), len(before & after), len(after)) == (10, 8, 11)
    assert values(tmp_path) == {**dict.fromkeys(range(8), 1), **dict.fromkeys(range(8, 11), 2)}
    assert changed(tmp_path, 1) == touched
    # A minute that lost its rows changed, too, though no file was added for it.
    assert commit_replace(root, INTERVALS, [], TouchedMinutes({HOUR: range(3, 4)}), None)
    assert 3 not in values(tmp_path)
    assert changed(tmp_path, 2) == TouchedMinutes({HOUR: range(3, 4)})


def test_rows_beside_replaced_minutes_are_kept_and_no_change(tmp_path: Path) -> None:
    """A file of all minutes, as compaction leaves it, and a late row."""
    root = str(tmp_path)
    commit_append(root, INTERVALS, minute_files(tmp_path, range(60), 1, split=False), None)
    touched = TouchedMinutes({HOUR: range(30, 35)})
    assert commit_replace(root, INTERVALS, minute_files(tmp_path, range(30, 35), 2), touched, None)
    assert values(tmp_path) == {m: 2 if 30 <= m < 35 else 1 for m in range(60)}
    assert changed(tmp_path, 1) == touched
    assert changed(tmp_path, None) == TouchedMinutes.whole([HOUR])


def test_a_replacement_that_is_late_twice_leaves_no_file_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compaction merges the files meanwhile: the rows beside are taken from the merged file."""
    root = str(tmp_path)
    for first in (0, 20):
        rows = minute_files(tmp_path, range(first, first + 20), 1, split=False)
        commit_append(root, INTERVALS, rows, None)
    Beside(monkeypatch, lambda: compact_table(root, INTERVALS.name))
    touched = TouchedMinutes({HOUR: range(10, 12)})
    new = minute_files(tmp_path, range(10, 12), 2)
    assert commit_replace(root, INTERVALS, new, touched, AppTransaction("a", 1))
    assert not commit_replace(root, INTERVALS, new, touched, AppTransaction("a", 1))
    assert values(tmp_path) == {m: 2 if 10 <= m < 12 else 1 for m in range(40)}
    mentioned = {
        path.split('"path":"')[1].split('"')[0]
        for log in (tmp_path / INTERVALS.name / "_delta_log").glob("*.json")
        for path in log.read_text().splitlines()
        if '"path":"' in path
    }
    there = {
        str(file.relative_to(tmp_path / INTERVALS.name)) for file in tmp_path.rglob("*.parquet")
    }
    assert there == mentioned


def test_bronze_changes_by_the_windows_of_its_files(tmp_path: Path) -> None:
    root = str(tmp_path)
    ensure_table(root, BRONZE_SAMPLES)
    rows = bronze(play(120))
    written = write_tables(root, "0", [(BRONZE_SAMPLES.name, rows)])
    commit_append(root, BRONZE_SAMPLES, written, None)
    log = followed(root, BRONZE_SAMPLES.name)
    found = change_since(root, BRONZE_SAMPLES.name, 0, log.version, log.files)
    assert len(found.files) == len(written)
    assert set(found.minutes) == set(log.hours())
    assert change_since(root, BRONZE_SAMPLES.name, 1, 1, log.files).files == []


def test_a_process_keeps_the_logs_that_it_used_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FOLLOWED_MAX", 2)
    roots = [str(tmp_path / str(number)) for number in range(3)]
    for root in roots:
        ensure_table(root, INTERVALS)
    first = followed(roots[0], INTERVALS.name)
    assert followed(roots[0], INTERVALS.name) is first
    for root in roots:
        followed(root, INTERVALS.name)
    assert followed(roots[0], INTERVALS.name) is not first
