"""Totals by key: the same whether rows come in one batch or in many."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headgate.pipeline.kernels import totals as module
from headgate.pipeline.kernels.totals import totals

ROWS = pa.table(
    {
        "key": ["a", None, "a", "b", None, "a"],
        "part": [1, 1, 1, None, 1, 2],
        "amount": [1.0, 2.0, None, 4.0, 5.0, 6.0],
    }
)
AGGREGATES = [("amount", "sum"), ("amount", "max"), ("amount", "min"), ("amount", "count")]


@pytest.mark.parametrize("merge_rows", [0, 2, 100])
@pytest.mark.parametrize("batch_rows", [1, 2, 6])
def test_batches_add_up(monkeypatch: pytest.MonkeyPatch, merge_rows: int, batch_rows: int) -> None:
    monkeypatch.setattr(module, "_MERGE_ROWS", merge_rows)
    found = totals(ROWS.to_batches(max_chunksize=batch_rows), ["key", "part"], AGGREGATES)
    assert found is not None
    rows = {tuple(row.values()) for row in found.to_pylist()}
    assert rows == {
        ("a", 1, 1.0, 1.0, 1.0, 1),
        (None, 1, 7.0, 5.0, 2.0, 2),
        ("b", None, 4.0, 4.0, 4.0, 1),
        ("a", 2, 6.0, 6.0, 6.0, 1),
    }


def test_no_rows_have_no_totals() -> None:
    assert totals([], ["key"], AGGREGATES) is None
