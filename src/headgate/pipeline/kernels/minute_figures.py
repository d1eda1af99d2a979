"""Verdicts of minutes, with the figures of ``intervals`` that few minutes have.

A join would bring them together, and Spark takes the smaller side of one into the driver's memory.
So rows of both tables come in one shuffle, and this kernel puts them together.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from headgate.pipeline.kernels.column_values import known
from headgate.pipeline.kernels.episodes import MINUTE_FIGURES, SORT_COLUMNS
from headgate.pipeline.tables.arrow_types import changes

VERDICT: Final = "verdict"
"""The column that a row of ``attribution`` has and a row of ``intervals`` lacks."""

MIXED_ORDER: Final = (*SORT_COLUMNS, VERDICT)
"""Order of the input of :func:`with_figures`: nulls come first, so the figures of a minute stand
before its verdict."""


def with_figures(table: pa.Table) -> pa.Table:
    """The rows with a verdict, each with ``MINUTE_FIGURES`` of the row with figures before it.

    The input has columns of both tables, sorted by :data:`MIXED_ORDER`. A row with a verdict has
    nulls for the figures, and keeps them if its minute has no row with figures. A minute has at
    most one row of each; figures without a verdict are dropped.
    """
    is_judged = known(table, VERDICT)
    if is_judged.all():
        return table
    rows = np.flatnonzero(is_judged)
    has_none = changes(table, SORT_COLUMNS)[rows]
    before = pa.array(rows - 1, mask=has_none)
    judged = table.take(pa.array(rows))
    for name in MINUTE_FIGURES:
        place = judged.schema.get_field_index(name)
        judged = judged.set_column(place, judged.field(place), table.column(name).take(before))
    return judged
