"""One file for each partition, with a unique name and statistics."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from headgate.pipeline.store import parquet_files as module
from headgate.pipeline.store.parquet_files import FILES_OPEN_MAX, TableFiles, write_tables
from headgate.pipeline.tables.bronze import BRONZE_SAMPLES
from tests.unit.pipeline.play import T0, Broker, S, bronze, play


def test_one_file_for_each_partition(tmp_path: Path) -> None:
    player = Broker(start_ns=T0 + 3_590 * S)
    rows = bronze([m for _ in range(20) for m in player.window()])
    files = write_tables(str(tmp_path), "7", [(BRONZE_SAMPLES.name, rows)])
    assert len(files) == 2 * 4
    assert sum(file.rows for file in files) == rows.num_rows
    for file in files:
        path = tmp_path / BRONZE_SAMPLES.name / file.path
        partition = dict(file.partition)
        assert file.path.startswith(
            f"date=2025-11-21/hour={partition['hour']}/kind={partition['kind']}/part-7-"
        )
        assert path.stat().st_size == file.size_bytes
        read = pq.ParquetFile(path).read()
        assert read.num_rows == file.rows
        assert not set(read.column_names) & set(partition)
        ends = read["window_end_ns"].to_pylist()
        statistics = json.loads(file.statistics)
        assert statistics["numRecords"] == file.rows
        assert statistics["minValues"]["window_end_ns"] == min(ends)
        assert statistics["maxValues"]["window_end_ns"] == max(ends)


def test_days_of_rows_need_few_open_files_and_little_memory(tmp_path: Path) -> None:
    """Whoever catches up has rows of very many hours: neither files nor rows pile up."""
    files = TableFiles(str(tmp_path), BRONZE_SAMPLES, "0")
    rows = bronze(play(1))
    hours = [rows.set_column(1, "hour", pa.array([h % 24] * rows.num_rows, pa.int32())) for h in
             range(3 * FILES_OPEN_MAX)]  # fmt: skip
    days = [
        part.set_column(0, "date", pa.array([date(2025, 11, 1 + n // 24)] * rows.num_rows))
        for n, part in enumerate(hours)
    ]
    open_most = 0
    for part in days:
        files.write(part)
        open_most = max(open_most, len(files._open))
    assert open_most == FILES_OPEN_MAX
    added = files.close()
    assert sum(file.rows for file in added) == sum(part.num_rows for part in days)
    assert len({file.path for file in added}) == len(added)
    for file in added:
        assert pq.ParquetFile(tmp_path / BRONZE_SAMPLES.name / file.path).metadata.num_rows > 0


def test_files_finished_early_are_abandoned_too(tmp_path: Path) -> None:
    files = TableFiles(str(tmp_path), BRONZE_SAMPLES, "0")
    rows = bronze(play(1))
    for hour in range(FILES_OPEN_MAX):
        files.write(rows.set_column(1, "hour", pa.array([hour % 24] * rows.num_rows, pa.int32())))
    files.abandon()
    assert not list(tmp_path.rglob("*.parquet"))
    assert files.close() == []


def test_no_name_is_used_twice(tmp_path: Path) -> None:
    pair = (BRONZE_SAMPLES.name, bronze(play(1)))
    names = [f.path for _ in range(3) for f in write_tables(str(tmp_path), "0", [pair])]
    assert len(set(names)) == len(names)


def test_a_large_partition_becomes_files_of_a_bounded_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = bronze(play(1))
    one = rows.filter(pc.equal(rows["kind"], "batch"))
    monkeypatch.setattr(module, "ROWS_BUFFERED_MAX", 3 * one.num_rows)
    files = TableFiles(str(tmp_path), BRONZE_SAMPLES, "0", file_bytes_max=1)
    for _ in range(7):
        files.write(one)
    assert [file.rows for file in files.close()] == [3 * one.num_rows] * 2 + [one.num_rows]


def test_few_rows_of_very_many_bytes_are_written_early(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = bronze(play(1))
    one = rows.filter(pc.equal(rows["kind"], "batch"))
    monkeypatch.setattr(module, "BYTES_BUFFERED_MAX", 5 * one.nbytes // 2)
    files = TableFiles(str(tmp_path), BRONZE_SAMPLES, "0")
    for _ in range(7):
        files.write(one)
    (file,) = files.close()
    footer = pq.read_metadata(tmp_path / BRONZE_SAMPLES.name / file.path)
    groups = [footer.row_group(place).num_rows for place in range(footer.num_row_groups)]
    assert groups == [3 * one.num_rows] * 2 + [one.num_rows]


def test_a_file_of_few_rows_has_few_row_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver reads the rows of kind batch, with their footers."""
    monkeypatch.setattr(module, "ROWS_BUFFERED_MAX", 100)
    player = Broker()
    rows = [bronze(player.window()) for _ in range(60)]
    files = TableFiles(str(tmp_path), BRONZE_SAMPLES, "0")
    for part in rows:
        files.write(part)
        assert sum(file.buffered for file in files._open.values()) < 100
    groups: dict[str, tuple[int, int]] = {}
    for file in files.close():
        footer = pq.read_metadata(tmp_path / BRONZE_SAMPLES.name / file.path)
        groups[dict(file.partition)["kind"]] = (footer.num_rows, footer.num_row_groups)
    assert sum(count for count, _ in groups.values()) == sum(part.num_rows for part in rows)
    assert groups["batch"][0] == 60
    assert 2 * groups["batch"][1] <= groups["subscription"][1]
