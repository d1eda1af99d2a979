"""The time over which the amounts of a minute were counted: the base of its shares and rates."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from headgate.pipeline.kernels.account_windows import longs
from headgate.pipeline.kernels.array_types import Longs

COUNTED_INPUT: Final = ("from_ns", "to_ns", "covered_ns", "gaps")
"""Columns of ``intervals`` that :func:`counted_ns` needs."""


def counted_ns(minutes: pa.Table) -> Longs:
    """The counted time of each minute of a table that has :data:`COUNTED_INPUT`.

    Brokers send running totals. So after lost rows (``gaps``) the next row includes their amounts,
    although ``covered_ns`` leaves their time out. Other uncovered time was not counted at all: the
    broker was down, or its clock was set.
    """
    length_ns = longs(minutes, "to_ns") - longs(minutes, "from_ns")
    covered_ns = np.minimum(longs(minutes, "covered_ns"), length_ns)
    return np.where(longs(minutes, "gaps") != 0, length_ns, covered_ns)
