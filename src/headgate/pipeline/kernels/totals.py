"""Totals by key over any number of rows, in memory for the keys only.

A folder may hold a hundred thousand subscriptions a minute. So each batch of rows is aggregated
when it is read, and only its totals are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import pyarrow as pa

Aggregate = tuple[str, str]
"""A column and its aggregate: ``sum``, ``min``, ``max`` or ``count`` (of values not null)."""

_MERGE_ROWS: Final = 500_000
"""Rows of totals that are kept before they are merged."""


def totals(
    batches: Iterable[pa.RecordBatch | pa.Table],
    keys: Sequence[str],
    aggregates: Sequence[Aggregate],
) -> pa.Table | None:
    """One row for each key, with the columns ``<column>_<aggregate>``; None without rows."""
    pending: list[pa.Table] = []
    rows = 0
    for batch in batches:
        table = batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
        summed = _summed(table, keys, aggregates)
        pending.append(summed)
        rows += summed.num_rows
        if rows > _MERGE_ROWS:
            pending = [_merged(pending, keys, aggregates)]
            # Many keys remain: collect as many rows again before the next merge.
            rows = 0
    if not pending:
        return None
    return _merged(pending, keys, aggregates)


def _summed(table: pa.Table, keys: Sequence[str], aggregates: Sequence[Aggregate]) -> pa.Table:
    # One thread: several would each aggregate all keys and then merge them, which takes longer.
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
