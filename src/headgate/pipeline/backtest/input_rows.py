"""Reads the rows of bronze files that a backtest needs.

Spark's workers read the files directly. With Spark's own reader, a row of so many columns costs 5
us on its way from Java to Python, more than all other work on it. Here it costs 0.5 us.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from functools import reduce
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headgate.pipeline.backtest.buckets import BUCKET
from headgate.pipeline.backtest.series import INPUT_COLUMNS, SUMS
from headgate.pipeline.store.table_store import store_of
from headgate.pipeline.tables.arrow_types import conform, table_arrow_schema
from headgate.pipeline.tables.bronze import BRONZE_SAMPLES

PATH: Final = "path"
_ROWS_READ: Final = 20_000
"""Rows that a worker reads at a time, before it packs them by bucket."""
_READ: Final = pa.schema(
    field
    for field in table_arrow_schema(BRONZE_SAMPLES)
    if field.name in {*INPUT_COLUMNS, *(name for names in SUMS.values() for name in names)}
)


def input_rows(
    batches: Iterable[pa.RecordBatch], root: str, buckets: int
) -> Iterator[pa.RecordBatch]:
    """Rows of the files of ``bronze_samples`` in the column :data:`PATH`, with
    :data:`INPUT_COLUMNS` and the bucket of the row's topic."""
    for batch in batches:
        for path in batch.column(PATH).to_pylist():
            yield from _rows_of(root, path, buckets)


def _rows_of(root: str, path: str, buckets: int) -> Iterator[pa.RecordBatch]:
    store = store_of(root)
    with pq.ParquetFile(store.path(BRONZE_SAMPLES.name, path), filesystem=store.files) as file:
        # Files older than a column do not have it.
        names = [name for name in _READ.names if name in file.schema_arrow.names]
        # One thread: the other cores run other tasks.
        for batch in file.iter_batches(_ROWS_READ, columns=names, use_threads=False):
            own = dict(zip(batch.schema.names, batch.columns, strict=True))
            yield from _input(conform(own, _READ, batch.num_rows), buckets).to_batches()


def _input(rows: pa.Table, buckets: int) -> pa.Table:
    columns: dict[str, Any] = {
        name: _sum(rows, SUMS[name]) if name in SUMS else rows.column(name)
        for name in INPUT_COLUMNS
    }
    columns[BUCKET] = pa.array(bucket_of(rows, buckets), pa.int32())
    return pa.table(columns)


def _sum(rows: pa.Table, names: tuple[str, ...]) -> Any:
    return reduce(pc.add, (pc.fill_null(rows.column(name), 0) for name in names))


def bucket_of(rows: pa.Table, buckets: int) -> npt.NDArray[np.int64]:
    """The bucket of each row's topic, the same in every process."""
    found = np.zeros(rows.num_rows, dtype=np.int64)
    for name in ("cluster", "topic", "partition"):
        column = rows.column(name).combine_chunks().cast(pa.string())
        codes = pc.fill_null(column, "").dictionary_encode()
        sums = [zlib.crc32(value.encode()) for value in codes.dictionary.to_pylist()]
        found = 31 * found + np.array(sums, dtype=np.int64)[codes.indices.to_numpy()]
    return found % buckets
