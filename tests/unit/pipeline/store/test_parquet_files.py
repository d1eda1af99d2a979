"""Files of a table: one for each partition, uniquely named, with their statistics."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq

from headgate.pipeline.store.parquet_files import write_tables
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


def test_no_name_is_used_twice(tmp_path: Path) -> None:
    pair = (BRONZE_SAMPLES.name, bronze(play(1)))
    names = [f.path for _ in range(3) for f in write_tables(str(tmp_path), "0", [pair])]
    assert len(set(names)) == len(names)
