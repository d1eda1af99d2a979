"""Commits to Delta tables are idempotent and replace exact partitions."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from headgate.base.clock import SystemClock
from headgate.base.errors import InputError
from headgate.pipeline.failures import PipelineError
from headgate.pipeline.store import delta_log as module
from headgate.pipeline.store.delta_log import (
    AppTransaction,
    commit_append,
    commit_drop,
    commit_replace,
    commit_replace_partition,
    ensure_table,
    open_table,
    table_files,
)
from headgate.pipeline.store.housekeeping.compact import compact_table
from headgate.pipeline.store.parquet_files import FileAdded, write_tables
from headgate.pipeline.tables.arrow_types import conform, table_arrow_schema
from headgate.pipeline.tables.bronze import BRONZE_SAMPLES
from headgate.pipeline.tables.columns import HOUR_NS, Table
from headgate.pipeline.tables.intervals import INTERVALS
from headgate.pipeline.tables.policy_backtest import POLICY_BACKTEST
from tests.unit.pipeline.play import T0, bronze, play
from tests.unit.pipeline.store.added_files import files_added

HOUR = T0 // HOUR_NS


def files(root: Path, *values: tuple[int, int]) -> list[FileAdded]:
    """Files of ``intervals`` with one row for each (hour of the day, appended)."""
    schema = table_arrow_schema(INTERVALS)
    tables = []
    for hour, appended in values:
        columns = {
            "date": pa.array([date(2025, 11, 21)]),
            "hour": pa.array([hour], pa.int32()),
            "kind": pa.array(["subscription"]),
            "appended": pa.array([appended]),
        }
        tables.append((INTERVALS.name, conform(columns, schema, 1)))
    return write_tables(str(root), "0", tables)


def appended(root: Path) -> list[int]:
    rows = DeltaTable(root / INTERVALS.name).to_pyarrow_table()
    return sorted(rows["appended"].to_pylist())


def test_a_transaction_is_committed_once(tmp_path: Path) -> None:
    root = str(tmp_path)
    first = AppTransaction("app", 0)
    assert commit_append(root, INTERVALS, files(tmp_path, (10, 1)), first)
    assert not commit_append(root, INTERVALS, files(tmp_path, (10, 1)), first)
    assert commit_append(root, INTERVALS, files(tmp_path, (10, 2)), AppTransaction("app", 1))
    assert not commit_append(root, INTERVALS, files(tmp_path, (10, 1)), first)
    assert commit_append(root, INTERVALS, files(tmp_path, (10, 3)), AppTransaction("other", 0))
    assert appended(tmp_path) == [1, 2, 3]


def test_exactly_the_named_hours_are_replaced(tmp_path: Path) -> None:
    root = str(tmp_path)
    commit_append(root, INTERVALS, files(tmp_path, (9, 1), (10, 2), (10, 3), (11, 4)), None)
    assert commit_replace(root, INTERVALS, files(tmp_path, (10, 20)), [HOUR], None)
    assert appended(tmp_path) == [1, 4, 20]
    assert commit_replace(root, INTERVALS, [], [HOUR + 1], AppTransaction("a", 5))
    assert appended(tmp_path) == [1, 20]
    assert not commit_replace(root, INTERVALS, [], [HOUR], AppTransaction("a", 5))
    assert appended(tmp_path) == [1, 20]


def test_exactly_one_partition_is_replaced(tmp_path: Path) -> None:
    root = str(tmp_path)
    schema = table_arrow_schema(POLICY_BACKTEST)

    def runs(*values: tuple[str, int]) -> list[FileAdded]:
        tables = [
            conform(
                {"run_id": pa.array([run]), "grid_point": pa.array([point], pa.int32())}, schema, 1
            )
            for run, point in values
        ]
        return write_tables(root, "0", [(POLICY_BACKTEST.name, table) for table in tables])

    def stored() -> list[tuple[str, int]]:
        rows = DeltaTable(tmp_path / POLICY_BACKTEST.name).to_pyarrow_table().to_pylist()
        return sorted((row["run_id"], row["grid_point"]) for row in rows)

    commit_append(root, POLICY_BACKTEST, runs(("a", 1), ("b", 2)), None)
    assert commit_replace_partition(root, POLICY_BACKTEST, runs(("a", 3)), {"run_id": "a"})
    assert stored() == [("a", 3), ("b", 2)]
    assert DeltaTable(tmp_path / POLICY_BACKTEST.name).version() == 2
    assert commit_replace_partition(root, POLICY_BACKTEST, [], {"run_id": "b"})
    assert stored() == [("a", 3)]
    assert not commit_replace_partition(root, POLICY_BACKTEST, [], {"run_id": "c"})


def test_files_added_since_a_version(tmp_path: Path) -> None:
    root = str(tmp_path)
    commit_append(root, INTERVALS, files(tmp_path, (9, 1)), None)
    seen = DeltaTable(tmp_path / INTERVALS.name).version()
    commit_append(root, INTERVALS, files(tmp_path, (10, 2)), None)
    commit_replace(root, INTERVALS, files(tmp_path, (11, 3)), [HOUR], None)
    delta = DeltaTable(tmp_path / INTERVALS.name)
    assert [file.hour for file in files_added(str(tmp_path), INTERVALS, delta, seen)] == [
        HOUR,
        HOUR + 1,
    ]
    assert {file.hour for file in files_added(str(tmp_path), INTERVALS, delta, None)} == {
        HOUR - 1,
        HOUR + 1,
    }
    (Path(root, INTERVALS.name, "_delta_log") / f"{seen + 1:020d}.json").unlink()
    assert {file.hour for file in files_added(str(tmp_path), INTERVALS, delta, seen)} == {
        HOUR - 1,
        HOUR + 1,
    }


@pytest.mark.parametrize("name", ["my tables", "Messgrößen", "a#b", "50%", "x%y", "run[1]", "?"])
def test_a_folder_may_have_any_name(tmp_path: Path, name: str) -> None:
    """Also one that means something else in a URL, or in a pattern."""
    root = str(tmp_path / name)
    for value in (1, 2, 3):
        commit_append(root, INTERVALS, files(Path(root), (8 + value, value)), None)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    delta = open_table(root, INTERVALS)
    assert len(table_files(delta)) == delta.version() == 3
    assert [file.hour for file in files_added(root, INTERVALS, delta, 2)] == [HOUR + 1]


def test_bronze_files_know_their_windows(tmp_path: Path) -> None:
    written = write_tables(str(tmp_path), "0", [(BRONZE_SAMPLES.name, bronze(play(30)))])
    commit_append(str(tmp_path), BRONZE_SAMPLES, written, None)
    for file in table_files(DeltaTable(tmp_path / BRONZE_SAMPLES.name)):
        assert file.hour == HOUR
        assert file.span_ns == (T0 + 10**9 - 1, T0 + 30 * 10**9 - 1)
        assert file.rows > 0


def test_an_interrupted_creation_is_repeated(tmp_path: Path) -> None:
    (tmp_path / INTERVALS.name / "_delta_log").mkdir(parents=True)
    assert ensure_table(str(tmp_path), INTERVALS).version() == 0
    assert commit_append(str(tmp_path), INTERVALS, files(tmp_path, (10, 1)), None)
    assert appended(tmp_path) == [1]


def test_a_new_column_is_added_to_an_old_table(tmp_path: Path) -> None:
    whole = table_arrow_schema(INTERVALS)
    short = pa.schema([field for field in whole if field.name != "acked"])
    DeltaTable.create(
        tmp_path / INTERVALS.name,
        short,
        partition_by=list(INTERVALS.partition_by),
        name=INTERVALS.name,
        configuration={"headgate.layout": "1"},
        raise_if_key_not_exists=False,
    )
    delta = ensure_table(str(tmp_path), INTERVALS)
    assert {field.name for field in delta.schema().fields} == set(whole.names)
    commit_append(str(tmp_path), INTERVALS, files(tmp_path, (10, 7)), None)
    assert appended(tmp_path) == [7]


def test_the_log_tells_of_removed_files_for_a_day(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a week it told of a million, which every commit of a stream read."""
    whole = table_arrow_schema(INTERVALS)
    DeltaTable.create(
        tmp_path / INTERVALS.name,
        whole,
        partition_by=list(INTERVALS.partition_by),
        name=INTERVALS.name,
        configuration={"headgate.layout": "1"},
        raise_if_key_not_exists=False,
    )
    # A table of an earlier release gets the property once.
    assert [ensure_table(str(tmp_path), INTERVALS).version() for _ in range(2)] == [1, 1]
    assert ensure_table(str(tmp_path / "new"), INTERVALS).version() == 0
    now_ns, told = SystemClock.wall_ns(), []
    for root in (tmp_path, tmp_path / "new"):
        for hours_ago in (26, 25, 23):
            then_ns = now_ns - hours_ago * HOUR_NS
            monkeypatch.setattr(SystemClock, "wall_ns", staticmethod(lambda ns=then_ns: ns))
            commit_replace(str(root), INTERVALS, files(root, (10, hours_ago)), [HOUR], None)
        delta = DeltaTable(root / INTERVALS.name)
        delta.create_checkpoint()
        (checkpoint,) = (root / INTERVALS.name / "_delta_log").glob("*.checkpoint.parquet")
        removed = pq.read_table(checkpoint, columns=["remove"])["remove"].to_pylist()
        told.append(sum(each is not None for each in removed))
        assert appended(root) == [23]
    assert told == [1, 1]


def test_a_folder_of_another_layout_is_refused(tmp_path: Path) -> None:
    DeltaTable.create(tmp_path / INTERVALS.name, table_arrow_schema(INTERVALS), name=INTERVALS.name)
    with pytest.raises(InputError, match="choose another folder"):
        ensure_table(str(tmp_path), INTERVALS)


def test_an_error_while_writing_leaves_no_file(tmp_path: Path) -> None:
    def rows():  # type: ignore[no-untyped-def]
        yield BRONZE_SAMPLES.name, bronze(play(2))
        raise RuntimeError("the disk is gone")

    with pytest.raises(RuntimeError, match="disk is gone"):
        write_tables(str(tmp_path), "0", rows())
    assert list(tmp_path.rglob("*.parquet")) == []


def test_a_reader_adds_no_columns(tmp_path: Path) -> None:
    """A writer that has loaded the table could not commit any more."""
    ensure_table(str(tmp_path), INTERVALS)
    narrow = Table(INTERVALS.name, INTERVALS.columns[:-1], INTERVALS.partition_by, ())
    older = tmp_path / "older"
    ensure_table(str(older), narrow)
    assert open_table(str(older), INTERVALS).version() == 0
    assert len(DeltaTable(older / INTERVALS.name).schema().fields) == len(narrow.columns)


class Beside:
    """Another job that commits each time before this one does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *acts: Callable[[], object]) -> None:
        self.acts = list(acts)
        self._check = module.check_lease
        monkeypatch.setattr(module, "check_lease", self.check_lease)

    def check_lease(self, root: str, name: str) -> None:
        if self.acts:
            act, kept = self.acts.pop(0), self.acts
            self.acts = []
            act()
            self.acts = kept
        self._check(root, name)


def test_a_replacement_sees_what_was_merged_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stream replaces an hour while its files are merged: no row of before stays."""
    root = str(tmp_path)
    for value in (1, 2):
        commit_append(root, INTERVALS, files(tmp_path, (10, value)), None)
    Beside(monkeypatch, lambda: compact_table(root, INTERVALS.name))
    assert commit_replace(root, INTERVALS, files(tmp_path, (10, 3)), [HOUR], AppTransaction("a", 1))
    assert appended(tmp_path) == [3]


def test_files_that_were_replaced_meanwhile_are_not_merged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = str(tmp_path)
    for value in (1, 2):
        commit_append(root, INTERVALS, files(tmp_path, (10, value)), None)
    new = files(tmp_path, (10, 3))
    before = {*tmp_path.rglob("*.parquet")}
    Beside(monkeypatch, lambda: commit_replace(root, INTERVALS, new, [HOUR], None))
    assert compact_table(root, INTERVALS.name).replaced == 0
    assert appended(tmp_path) == [3]
    assert {*tmp_path.rglob("*.parquet")} == before


def test_retention_and_a_stream_commit_at_the_same_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = str(tmp_path)
    commit_append(root, INTERVALS, files(tmp_path, (9, 1), (10, 2)), None)
    late = files(tmp_path, (9, 3))
    Beside(
        monkeypatch,
        lambda: commit_append(root, INTERVALS, late, AppTransaction("stream", 1)),
        lambda: commit_append(root, INTERVALS, files(tmp_path, (11, 4)), None),
    )
    assert len(commit_drop(root, INTERVALS.name, HOUR)) == 2
    assert appended(tmp_path) == [2, 4]
    assert not commit_append(root, INTERVALS, late, AppTransaction("stream", 1))


def test_a_commit_that_is_always_late_ends_with_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = str(tmp_path)
    commit_append(root, INTERVALS, files(tmp_path, (9, 1)), None)
    monkeypatch.setattr(module, "COMMIT_ATTEMPTS_MAX", 2)
    again = [lambda: commit_append(root, INTERVALS, files(tmp_path, (9, 1)), None)] * 2
    Beside(monkeypatch, *again)
    with pytest.raises(PipelineError, match=r"table intervals .* another job 2 times"):
        commit_append(root, INTERVALS, files(tmp_path, (9, 5)), None)
    assert appended(tmp_path) == [1, 1, 1]


def test_two_jobs_may_create_a_table_and_its_columns_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = str(tmp_path)
    Beside(monkeypatch, lambda: ensure_table(root, INTERVALS))
    assert ensure_table(root, INTERVALS).version() == 0
