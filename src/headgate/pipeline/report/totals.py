"""Totals by key over any number of rows, in the memory that the keys need. No Spark.

A folder may hold a hundred thousand subscriptions a minute: rows pass in batches, each is summed
by key at once, and only the sums are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.pipeline.report.grid import Values

Aggregate = tuple[str, str]
"""A column and what is made of it: ``sum``, ``min``, ``max`` or ``count`` (of values not null)."""

_MERGE_ROWS: Final = 500_000
"""Sums that wait before they are summed up themselves."""


def totals(
    batches: Iterable[pa.RecordBatch | pa.Table],
    keys: Sequence[str],
    aggregates: Sequence[Aggregate],
) -> pa.Table | None:
    """One row for each key, with the columns ``<column>_<aggregate>``; None without rows."""
    waiting: list[pa.Table] = []
    rows = 0
    for batch in batches:
        table = batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
        summed = _summed(table, keys, aggregates)
        waiting.append(summed)
        rows += summed.num_rows
        if rows > _MERGE_ROWS:
            waiting = [_merged(waiting, keys, aggregates)]
            # Many keys stay many: wait for as many again before the next merge.
            rows = 0
    if not waiting:
        return None
    return _merged(waiting, keys, aggregates)


def _summed(table: pa.Table, keys: Sequence[str], aggregates: Sequence[Aggregate]) -> pa.Table:
    # One thread: with several, each has keys of its own to be merged, which takes longer.
    found = table.group_by(list(keys), use_threads=False).aggregate(list(aggregates))
    names = [f"{column}_{function}" for column, function in aggregates]
    return found.select([*keys, *names])


def _merged(
    tables: Sequence[pa.Table], keys: Sequence[str], aggregates: Sequence[Aggregate]
) -> pa.Table:
    names = [f"{column}_{function}" for column, function in aggregates]
    again = [
        (name, "sum" if function == "count" else function)
        for name, (_, function) in zip(names, aggregates, strict=True)
    ]
    return _summed(pa.concat_tables(tables), keys, again).rename_columns([*keys, *names])


def largest(rows: pa.Table, amounts: Values, top: int) -> list[dict[str, Any]]:
    """The ``top`` rows with the largest amounts above 0."""
    order = np.argsort(-amounts, kind="stable")[:top]
    found: list[dict[str, Any]] = rows.take(pa.array(order)).to_pylist()
    return [row for row, place in zip(found, order, strict=True) if amounts[place] > 0]


def matching(rows: pa.Table, names: tuple[str, ...], key: dict[str, Any]) -> pa.Table:
    """The rows that have the key's values; null equals null."""
    for name in names:
        column, value = rows[name], key[name]
        rows = rows.filter(pc.is_null(column) if value is None else pc.equal(column, value))
    return rows
