"""A left join of Arrow tables in which a null of a key equals a null.

Arrow's own join matches no null. A broker may have no cluster's name, and a topic no partition.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

_PLACE: Final = "_place"


def joined_rows(rows: pa.Table, more: pa.Table, key: Sequence[str]) -> pa.Table:
    """All rows, with the other columns of ``more`` where the key is the same.

    A key is at most once in ``more``. Columns of ``more`` are null where it lacks the key. The
    order of the rows stays.
    """
    left, right = _with_flags(rows, key), _with_flags(more, key)
    places = right.append_column(_PLACE, pa.array(range(right.num_rows), pa.int64()))
    numbered = left.append_column("_row", pa.array(range(left.num_rows), pa.int64()))
    found = numbered.join(places, left.column_names).sort_by("_row")
    place = found.column(_PLACE).combine_chunks()
    for name in more.column_names:
        if name not in key:
            rows = rows.append_column(name, more.column(name).take(place))
    return rows


def _with_flags(rows: pa.Table, key: Sequence[str]) -> pa.Table:
    """The columns of the key with some value in place of each null, and whether it is one."""
    columns = {}
    for name in key:
        column = rows.column(name)
        columns[name] = pc.fill_null(column, _some_value(column.type))
        columns[f"{name}_is_null"] = pc.is_null(column)
    return pa.table(columns)


def _some_value(kind: pa.DataType) -> pa.Scalar:
    if pa.types.is_boolean(kind):
        return pa.scalar(False)
    return pa.scalar("" if pa.types.is_string(kind) else 0, kind)
