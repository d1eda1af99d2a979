"""Packed buckets unpack to the same rows."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headgate.pipeline.backtest.buckets import BUCKET, PIECES_SCHEMA, pack, sorted_by, unpack


def batches(count: int, buckets: int, rows: int = 7) -> list[pa.RecordBatch]:
    table = pa.table(
        {
            "name": [None if n % 5 == 0 else f"t{n % 11}" for n in range(count)],
            "value": list(range(count)),
            BUCKET: pa.array([n * 31 % buckets for n in range(count)], pa.int32()),
        }
    )
    return table.to_batches(max_chunksize=rows)


@pytest.mark.parametrize("rows_packed", [1, 10, 1_000])
def test_every_row_comes_out_with_its_bucket(rows_packed: int) -> None:
    pieces = list(pack(batches(100, 4), rows_packed))
    assert {piece.schema for piece in pieces} == {PIECES_SCHEMA}
    shuffled = sorted_by(pa.Table.from_batches(pieces), [BUCKET])
    tables = list(unpack(shuffled.to_batches(max_chunksize=3)))
    assert [{n * 31 % 4 for n in table["value"].to_pylist()} for table in tables] == [
        {0}, {1}, {2}, {3},
    ]  # fmt: skip
    rows = [row for table in tables for row in table.to_pylist()]
    wanted = pa.Table.from_batches(batches(100, 4)).drop_columns([BUCKET]).to_pylist()
    assert sorted(rows, key=lambda row: row["value"]) == wanted


def test_no_rows_give_no_pieces() -> None:
    assert list(pack([])) == []
    assert list(unpack([])) == []


def test_nulls_stand_last() -> None:
    table = pa.table({"a": [2, None, 1], "b": [1, 2, 3]})
    assert sorted_by(table, ["a", "b"])["b"].to_pylist() == [3, 1, 2]
