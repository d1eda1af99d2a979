"""Columns of Arrow tables as NumPy arrays, with the distinct combinations of their values."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.base.units import DOUBLE_EXACT_MAX, INT64_MAX
from headgate.pipeline.kernels.array_types import Doubles, Flags, Longs
from headgate.pipeline.tables.columns import HOUR_NS


def flags(column: Any) -> Flags:
    """A boolean column; null is False."""
    if column.null_count:
        column = pc.fill_null(column, False)
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.bool_)


def known(table: pa.Table, name: str) -> Flags:
    """Which rows of a column are not null."""
    column = table.column(name)
    if not column.null_count:
        return np.ones(table.num_rows, dtype=np.bool_)
    return flags_of_chunks(pc.is_valid(column))


def flags_of_chunks(column: pa.ChunkedArray) -> Flags:
    """A boolean column in chunks; null is False."""
    return flags(column.combine_chunks())


def doubles(table: pa.Table, name: str) -> Doubles:
    """A column of numbers; null is NaN."""
    column = table.column(name).cast(pa.float64(), safe=False)
    if column.null_count:
        column = pc.fill_null(column, np.nan)
    return np.asarray(column.to_numpy(), dtype=np.float64)


def hour_rows(table: pa.Table, hours: Collection[int]) -> Flags:
    """Which rows of a table with ``from_ns`` begin in some hours (numbers since the epoch)."""
    hour = np.asarray(table.column("from_ns").to_numpy(), dtype=np.int64) // HOUR_NS
    return np.isin(hour, np.fromiter(hours, np.int64, len(hours)))


def optional(values: Doubles) -> list[float | None]:
    """The values as a list, with None for NaN."""
    return [None if value != value else value for value in values.tolist()]


def nullable(values: Doubles) -> pa.Array:
    """The values as a column, with null for NaN."""
    return pa.array(values, pa.float64(), mask=np.isnan(values))


def quotients(parts: Longs, wholes: Longs) -> Doubles:
    """``part / whole`` of whole numbers, correctly rounded as in Python; no whole is 0.

    Doubles round numbers beyond ``DOUBLE_EXACT_MAX`` before they divide, so these go one by one.
    """
    found = parts.astype(np.float64) / wholes
    large = (np.abs(parts) > DOUBLE_EXACT_MAX) | (np.abs(wholes) > DOUBLE_EXACT_MAX)
    for place in np.flatnonzero(large).tolist():
        found[place] = int(parts[place]) / int(wholes[place])
    return found


def distinct_rows(table: pa.Table, names: Sequence[str]) -> tuple[Longs, list[dict[str, Any]]]:
    """The distinct combinations of some columns, and by row the place of its own among them.

    Limits, sources and policies are few beside minutes: what follows from them is computed once for
    each combination.
    """
    codes = np.zeros(table.num_rows, dtype=np.int64)
    if table.num_rows == 0:
        return codes, []
    for name in names:
        column = table.column(name).combine_chunks().dictionary_encode(null_encoding="encode")
        more = pc.fill_null(column.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64) + 1
        if int(codes.max()) * (len(column.dictionary) + 2) >= INT64_MAX:
            codes = np.unique(codes, return_inverse=True)[1]
        codes = codes * (len(column.dictionary) + 1) + more
    _, first, place = np.unique(codes, return_index=True, return_inverse=True)
    rows = table.select(list(names)).take(pa.array(first)).to_pylist()
    return np.asarray(place, dtype=np.int64), rows


def texts_by_code(texts: Sequence[str | None], codes: Longs) -> pa.Array:
    """A column of texts: by row the one of its code; null for a code below 0."""
    return pa.array(list(texts), pa.string()).take(pa.array(codes, mask=codes < 0))
