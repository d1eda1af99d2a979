"""Selection of rows from a table that is in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.pipeline.kernels.array_types import Doubles


def largest(rows: pa.Table, amounts: Doubles, top: int) -> list[dict[str, Any]]:
    """The ``top`` rows with the largest amounts above 0."""
    order = np.argsort(-amounts, kind="stable")[:top]
    found: list[dict[str, Any]] = rows.take(pa.array(order)).to_pylist()
    return [row for row, index in zip(found, order, strict=True) if amounts[index] > 0]


def matching(rows: pa.Table, names: tuple[str, ...], key: dict[str, Any]) -> pa.Table:
    """The rows whose columns equal those of ``key``; null equals null."""
    for name in names:
        column, value = rows[name], key[name]
        rows = rows.filter(pc.is_null(column) if value is None else pc.equal(column, value))
    return rows
