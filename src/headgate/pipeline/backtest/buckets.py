"""Packs the rows of each bucket into a few binary values, for a cheap shuffle.

A shuffle serializes each row, but only copies the bytes of a binary value. So the rows of a bucket
leave a task as one stream of Arrow batches in a binary value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

BUCKET: Final = "bucket"
PIECES_SCHEMA: Final = pa.schema([(BUCKET, pa.int32()), ("rows", pa.binary())])
ROWS_PACKED: Final = 20_000
"""Rows that a task collects before it packs them."""


def pack(
    batches: Iterable[pa.RecordBatch], rows_packed: int = ROWS_PACKED
) -> Iterator[pa.RecordBatch]:
    """Rows with a column :data:`BUCKET` (int32, no nulls) as pieces of :data:`PIECES_SCHEMA`, which
    do not contain that column."""
    pending: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        pending.append(batch)
        count += batch.num_rows
        if count >= rows_packed:
            yield _pieces(pa.Table.from_batches(pending))
            pending, count = [], 0
    if count:
        yield _pieces(pa.Table.from_batches(pending))


def _pieces(table: pa.Table) -> pa.RecordBatch:
    buckets = np.asarray(table.column(BUCKET).to_numpy())
    order = np.argsort(buckets, kind="stable")
    sorted_buckets = buckets[order]
    rows = table.drop_columns([BUCKET]).take(pa.array(order))
    firsts = np.flatnonzero(np.append(True, sorted_buckets[1:] != sorted_buckets[:-1]))
    stops = np.append(firsts[1:], len(buckets))
    pieces = [
        _packed(rows.slice(first, stop - first))
        for first, stop in zip(firsts.tolist(), stops.tolist(), strict=True)
    ]
    columns = [pa.array(sorted_buckets[firsts], pa.int32()), pa.array(pieces, pa.binary())]
    return pa.record_batch(columns, schema=PIECES_SCHEMA)


def _packed(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    found: bytes = sink.getvalue().to_pybytes()
    return found


def unpack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The rows of every bucket, from pieces sorted by bucket."""
    pieces: list[pa.Table] = []
    present: int | None = None
    for batch in batches:
        buckets = batch.column(BUCKET).to_pylist()
        for bucket, rows in zip(buckets, batch.column("rows"), strict=True):
            if bucket != present and pieces:
                yield pa.concat_tables(pieces)
                pieces = []
            present = bucket
            pieces.append(pa.ipc.open_stream(rows.as_buffer()).read_all())
    if pieces:
        yield pa.concat_tables(pieces)


def sorted_by(table: pa.Table, names: Iterable[str]) -> pa.Table:
    """A table in the order of some columns, nulls last."""
    keys = [(name, "ascending") for name in names]
    return table.take(pc.sort_indices(table, sort_keys=keys))
