"""What changed between two sets of rows of a table, row by row. No Spark.

The result depends on the rows alone and not on the files that they are in, so a table that is
replaced as a whole with the same rows has no change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from headgate.pipeline.source.options import CHANGE
from headgate.pipeline.tables.arrow_types import changes

NEW: Final = "new"
CORRECTED: Final = "corrected"
REMOVED: Final = "removed"
"""Values of the column ``change``: of a row that was absent, that has other values now, and that no
longer exists, with the values that it had."""

_IS_NOW: Final = "__is_now"


def row_changes(
    before: pa.Table, now: pa.Table, key: Sequence[str], columns: Sequence[str]
) -> pa.Table:
    """The rows of ``columns`` that differ, with the column ``change``, in the order of the key.

    Both tables have the same columns. ``key`` identifies a row; nulls in it are equal. A row is
    corrected if any of its columns differs, also one that is not among ``columns``.
    """
    both = pa.concat_tables([_marked(before, is_now=False), _marked(now, is_now=True)])
    both = both.sort_by([(name, "ascending") for name in (*key, _IS_NOW)]).combine_chunks()
    if not both.num_rows:
        return _named(both, np.array([], dtype=object), columns)
    is_now = both.column(_IS_NOW).to_numpy(zero_copy_only=False).astype(bool)
    # A pair is a row of before, followed by one of now with the same key.
    follows = np.zeros(len(is_now), dtype=bool)
    follows[1:] = ~changes(both, key)[1:] & is_now[1:] & ~is_now[:-1]
    precedes = np.append(follows[1:], False)
    differs = changes(both, [name for name in now.column_names if name not in key])
    kinds = np.where(is_now, NEW, REMOVED).astype(object)
    kinds[follows] = CORRECTED
    kept = ~precedes & ~(follows & ~differs)
    return _named(both.filter(pa.array(kept)), kinds[kept], columns)


def _marked(rows: pa.Table, *, is_now: bool) -> pa.Table:
    return rows.append_column(_IS_NOW, pa.array(np.full(rows.num_rows, is_now)))


def _named(rows: pa.Table, kinds: np.ndarray, columns: Sequence[str]) -> pa.Table:
    change = pa.array(kinds.tolist(), pa.string())
    return rows.select(list(columns)).append_column(CHANGE, change)
