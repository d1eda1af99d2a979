"""Bronze's files as the backtest reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from headgate.pipeline.backtest.buckets import BUCKET
from headgate.pipeline.backtest.input_rows import PATH, bucket_of, input_rows
from headgate.pipeline.backtest.series import INPUT_COLUMNS
from headgate.pipeline.tables.arrow_types import table_arrow_schema
from headgate.pipeline.tables.bronze import BRONZE_SAMPLES

SCHEMA = table_arrow_schema(BRONZE_SAMPLES)


def written(path: Path, rows: list[dict[str, Any]], without: tuple[str, ...] = ()) -> str:
    """A file of the table with these rows; its name."""
    folder = path.parent / BRONZE_SAMPLES.name
    folder.mkdir(exist_ok=True)
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    pq.write_table(table.drop_columns(["date", "hour", "kind", *without]), folder / path.name)
    return path.name


def read(root: Path, *paths: str, buckets: int = 7) -> pa.Table:
    """All rows of some files, each named by a batch of its own."""
    named = [pa.record_batch({PATH: [path]}) for path in paths]
    return pa.Table.from_batches(input_rows(named, str(root), buckets))


def row(topic: int, **fields: Any) -> dict[str, Any]:
    return {"cluster": "c", "topic": f"t{topic}", "partition": None, "seq": 1} | fields


def test_input_rows_have_the_input_columns_with_their_sums(tmp_path: Path) -> None:
    rows = [
        row(1, parked_topic_rate_ns=5, parked_adaptive_ns=7, backlog_bytes=3),
        row(2, parked_memory_bytes=9, parked_broker_rate_bytes=2, eviction_time_bytes=4),
    ]
    found = read(tmp_path, written(tmp_path / "a.parquet", rows))
    assert found.column_names == [*INPUT_COLUMNS, BUCKET]
    assert found.column("parked_ns").to_pylist() == [12, 0]
    # What waits for memory has not been read: it is no part of what producers want.
    assert found.column("parked_bytes").to_pylist() == [0, 2]
    assert found.column("evicted_bytes").to_pylist() == [0, 4]
    assert found.column("backlog_bytes").to_pylist() == [3, None]


def test_a_column_that_an_old_file_lacks_is_null_and_counts_as_zero(tmp_path: Path) -> None:
    rows = [row(1, parked_adaptive_ns=7, parked_topic_rate_ns=1, oldest_age_ns=5)]
    old = written(tmp_path / "old.parquet", rows, ("parked_adaptive_ns", "oldest_age_ns"))
    new = written(tmp_path / "new.parquet", rows)
    found = read(tmp_path, old, new)
    assert found.column("parked_ns").to_pylist() == [1, 8]
    assert found.column("oldest_age_ns").to_pylist() == [None, 5]


def test_a_topic_has_one_bucket_wherever_it_is_read(tmp_path: Path) -> None:
    some = [row(n % 50, partition=n % 3 or None) for n in range(150)]
    found = read(
        tmp_path, written(tmp_path / "a.parquet", some), written(tmp_path / "b.parquet", some[::-1])
    )
    buckets = found.column(BUCKET).to_numpy()
    assert (buckets[:150] == buckets[150:][::-1]).all()
    assert set(buckets.tolist()) == set(range(7))


def test_topics_are_spread_evenly() -> None:
    names = pa.array([f"persistent://public/default/topic-{n}" for n in range(10_000)])
    table = pa.table(
        {"cluster": pa.nulls(10_000, pa.string()), "topic": names, "partition": [0] * 10_000}
    )
    counts = np.bincount(bucket_of(table, 10))
    assert counts.min() > 900
    assert counts.max() < 1_100
