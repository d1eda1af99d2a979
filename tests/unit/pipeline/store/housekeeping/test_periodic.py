"""Housekeeping by a stream: crowded partitions after batches, closed hours once an hour."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable

from headgate.pipeline.store.delta_log import (
    AppTransaction,
    commit_append,
    commit_replace,
    table_files,
)
from headgate.pipeline.store.housekeeping import periodic as module
from headgate.pipeline.store.housekeeping import vacuum
from headgate.pipeline.store.housekeeping.periodic import (
    FILES_MAX,
    LISTING_PERIODS,
    PERIOD_S,
    PeriodicHousekeeping,
    merge_after_run,
)
from headgate.pipeline.store.housekeeping.small_files import CompactionLimits
from headgate.pipeline.store.parquet_files import write_tables
from headgate.pipeline.tables.bronze import BRONZE_SAMPLES
from headgate.pipeline.tables.catalogue import TABLES
from headgate.pipeline.tables.intervals import INTERVALS
from tests.unit.pipeline.play import Broker, bronze
from tests.unit.pipeline.store.housekeeping.test_vacuum import old_file
from tests.unit.pipeline.store.test_delta_log import HOUR, appended, files


class Clock:
    """A clock that is set."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def kinds(root: Path) -> list[str]:
    """The kind of every live file of ``bronze_samples``."""
    delta = DeltaTable(root / BRONZE_SAMPLES.name)
    return sorted(file.partition["kind"] for file in table_files(delta))


def test_a_crowded_bronze_partition_is_compacted(tmp_path: Path) -> None:
    housekeeping, player = PeriodicHousekeeping(str(tmp_path), monotonic=Clock()), Broker()

    def batch() -> None:
        rows = write_tables(str(tmp_path), "0", [(BRONZE_SAMPLES.name, bronze(player.window()))])
        commit_append(str(tmp_path), BRONZE_SAMPLES, rows, None)

    for _ in range(FILES_MAX):
        batch()
    housekeeping.after_batch()
    assert kinds(tmp_path).count("topic") == FILES_MAX
    batch()
    housekeeping.after_batch()
    assert kinds(tmp_path) == ["batch", "limiter", "subscription", "topic"]


def turns(housekeeping: PeriodicHousekeeping) -> None:
    """Let it do what is due now."""
    for _ in range(3 * len(TABLES)):
        housekeeping.after_batch()
    assert not housekeeping.is_due


def test_closed_hours_of_all_tables_are_compacted_once_a_period(tmp_path: Path) -> None:
    clock = Clock()
    housekeeping = PeriodicHousekeeping(str(tmp_path), monotonic=clock)
    for hour in (8, 8, 9, 10, 10):
        commit_append(str(tmp_path), INTERVALS, files(tmp_path, (hour, hour)), None)

    def hours() -> list[int]:
        found = table_files(DeltaTable(tmp_path / INTERVALS.name))
        return sorted(file.hour - HOUR + 10 for file in found)

    turns(housekeeping)
    assert hours() == [8, 9, 10, 10]
    commit_append(str(tmp_path), INTERVALS, files(tmp_path, (8, 8)), None)
    turns(housekeeping)
    assert hours() == [8, 8, 9, 10, 10]
    clock.now_s += PERIOD_S
    turns(housekeeping)
    assert hours() == [8, 9, 10, 10]
    assert appended(tmp_path) == [8, 8, 8, 9, 10, 10]


def test_a_turn_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    housekeeping = PeriodicHousekeeping(str(tmp_path), monotonic=Clock())
    for hour in (5, 5, 6, 6, 10):
        commit_append(str(tmp_path), INTERVALS, files(tmp_path, (hour, hour)), None)
    pair = 2 * max(file.size_bytes for file in table_files(DeltaTable(tmp_path / INTERVALS.name)))
    monkeypatch.setattr(module, "_CLOSED", CompactionLimits(1, pair, pair, 2))
    counts = []
    while housekeeping.is_due and len(counts) < 3 * len(TABLES):
        housekeeping.after_batch()
        counts.append(len(table_files(DeltaTable(tmp_path / INTERVALS.name))))
    assert {4, 3} <= {*counts}
    assert counts[-1] == 3


def test_old_rows_are_dropped_once_a_period(tmp_path: Path) -> None:
    clock = Clock()
    housekeeping = PeriodicHousekeeping(str(tmp_path), retain_days=2, monotonic=clock)
    commit_append(str(tmp_path), INTERVALS, files(tmp_path, (10, 1)), None)
    turns(housekeeping)
    assert appended(tmp_path) == [1]
    clock.now_s += PERIOD_S
    assert housekeeping.is_due
    turns(housekeeping)
    assert appended(tmp_path) == []


def test_a_run_merges_what_it_left_in_all_tables(tmp_path: Path) -> None:
    for hour in (8, 8, 10, 10):
        commit_append(str(tmp_path), INTERVALS, files(tmp_path, (hour, hour)), None)
    done = merge_after_run(str(tmp_path))
    assert (done.replaced, done.added) == (2, 1)
    assert merge_after_run(str(tmp_path)).replaced == 0
    assert appended(tmp_path) == [8, 8, 10, 10]


def test_unused_files_are_deleted_once_an_hour(tmp_path: Path) -> None:
    clock = Clock()
    housekeeping = PeriodicHousekeeping(str(tmp_path), monotonic=clock)
    commit_append(str(tmp_path), INTERVALS, files(tmp_path, (10, 1)), AppTransaction("a", 1))

    def orphan() -> Path:
        return old_file(tmp_path, files(tmp_path, (10, 2))[0].path, 7)

    first = orphan()
    clock.now_s = PERIOD_S - 1
    turns(housekeeping)
    assert first.exists()
    clock.now_s += 1
    housekeeping.after_batch()
    assert not first.exists()
    # The next ones delete what a version removed; one of 24 lists all files again.
    second = orphan()
    for _ in range(LISTING_PERIODS - 1):
        clock.now_s += PERIOD_S
        housekeeping.after_batch()
        assert second.exists()
    clock.now_s += PERIOD_S - 1
    turns(housekeeping)
    assert second.exists()
    clock.now_s += 1
    housekeeping.after_batch()
    assert not second.exists()


def test_replaced_files_are_deleted_without_listing_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RETAIN_HOURS", 0)
    monkeypatch.setattr(vacuum, "VERSIONS_KEPT", 2)
    clock, root = Clock(), str(tmp_path)
    housekeeping = PeriodicHousekeeping(root, monotonic=clock)
    commit_append(root, INTERVALS, files(tmp_path, (10, 1)), None)
    clock.now_s = PERIOD_S
    housekeeping.after_batch()
    monkeypatch.setattr(vacuum, "_dead_files", lambda *_, **__: pytest.fail("it listed files"))
    for value in (2, 3, 4):
        commit_replace(root, INTERVALS, files(tmp_path, (10, value)), [HOUR], None)
    assert len([*tmp_path.rglob("*.parquet")]) == 4
    clock.now_s += PERIOD_S
    housekeeping.after_batch()
    # Two versions stay readable, and so their files.
    assert len([*tmp_path.rglob("*.parquet")]) == 2
    assert appended(tmp_path) == [4]


def test_a_stream_outlives_files_that_others_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A vacuum that listed all files had deleted what this process saw removed, as had ``compact
    --vacuum`` beside it. The next vacuum deleted that once more, failed, and ended the stream."""
    monkeypatch.setattr(module, "RETAIN_HOURS", 0)
    monkeypatch.setattr(module, "LISTING_PERIODS", 3)
    monkeypatch.setattr(vacuum, "VERSIONS_KEPT", 1)
    clock, root = Clock(), str(tmp_path)
    housekeeping = PeriodicHousekeeping(root, monotonic=clock)
    commit_append(root, INTERVALS, files(tmp_path, (10, 0)), None)
    for value in range(1, 8):
        commit_replace(root, INTERVALS, files(tmp_path, (10, value)), [HOUR], None)
        clock.now_s += PERIOD_S
        housekeeping.after_batch()
        assert appended(tmp_path) == [value]
        assert len([*tmp_path.rglob("*.parquet")]) == 1
    commit_replace(root, INTERVALS, files(tmp_path, (10, 9)), [HOUR], None)
    vacuum.vacuum(root, 0, False)
    clock.now_s += PERIOD_S
    housekeeping.after_batch()
    assert appended(tmp_path) == [9]
