"""Housekeeping by a stream: crowded partitions after batches, a vacuum once an hour."""

from __future__ import annotations

from pathlib import Path

from deltalake import DeltaTable

from headgate.pipeline.store.delta_log import AppTransaction, commit_append, table_files
from headgate.pipeline.store.housekeeping.periodic import (
    FILES_MAX,
    VACUUM_PERIOD_S,
    PeriodicHousekeeping,
)
from headgate.pipeline.store.parquet_files import write_tables
from headgate.pipeline.tables.bronze import BRONZE_SAMPLES
from headgate.pipeline.tables.intervals import INTERVALS
from tests.unit.pipeline.play import Broker, bronze
from tests.unit.pipeline.store.housekeeping.test_vacuum import old_file
from tests.unit.pipeline.store.test_delta_log import files


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
    tidying, player = PeriodicHousekeeping(str(tmp_path), monotonic=Clock()), Broker()

    def batch() -> None:
        rows = write_tables(str(tmp_path), "0", [(BRONZE_SAMPLES.name, bronze(player.window()))])
        commit_append(str(tmp_path), BRONZE_SAMPLES, rows, None)

    for _ in range(FILES_MAX):
        batch()
    tidying.after_batch()
    assert kinds(tmp_path).count("topic") == FILES_MAX
    batch()
    tidying.after_batch()
    assert kinds(tmp_path) == ["batch", "limiter", "subscription", "topic"]


def test_unused_files_are_deleted_once_an_hour(tmp_path: Path) -> None:
    clock = Clock()
    tidying = PeriodicHousekeeping(str(tmp_path), monotonic=clock)
    commit_append(str(tmp_path), INTERVALS, files(tmp_path, (10, 1)), AppTransaction("a", 1))

    def orphan() -> Path:
        return old_file(tmp_path, files(tmp_path, (10, 2))[0].path, 7)

    first = orphan()
    clock.now_s = VACUUM_PERIOD_S - 1
    tidying.after_batch()
    assert first.exists()
    clock.now_s += 1
    tidying.after_batch()
    assert not first.exists()
    second = orphan()
    clock.now_s += VACUUM_PERIOD_S - 1
    tidying.after_batch()
    assert second.exists()
    clock.now_s += 1
    tidying.after_batch()
    assert not second.exists()
