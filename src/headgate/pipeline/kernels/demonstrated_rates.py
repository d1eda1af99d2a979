"""Demonstrated rates of subscriptions over sliding windows of hours.

The input has one row for each minute that demonstrates a rate, sorted by subscription and hour.
There are few such minutes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from headgate.flow.account.demonstrated import DEMONSTRATED_PERCENTILE
from headgate.pipeline.tables.arrow_types import arrow_schema, changes
from headgate.pipeline.tables.attribution import ATTRIBUTION, ATTRIBUTION_KEY
from headgate.pipeline.tables.columns import DOUBLE, LONG, TableColumn

HOUR: Final = TableColumn("minute_hour", LONG, "Hour of the minute, counted since the epoch.")
RATE: Final = TableColumn("minute_rate_per_s", DOUBLE, "Messages acknowledged per second in it.")
KEYS: Final = tuple(column for column in ATTRIBUTION.columns if column.name in ATTRIBUTION_KEY)
RATES: Final = "demonstrated_rates_per_s"
"""Column of the output: a list with one rate for each window, null where none is demonstrated."""

DEMONSTRATED_SCHEMA: Final = arrow_schema(KEYS).append(pa.field(RATES, pa.list_(pa.float64())))


def demonstrated_rates(
    table: pa.Table, first_hours: Sequence[int], last_hours: Sequence[int]
) -> pa.Table:
    """One row for each subscription: its demonstrated rate over each window of hours.

    ``table`` has the key, :data:`HOUR` and :data:`RATE`. ``first_hours`` and ``last_hours`` bound
    the windows, inclusively.
    """
    rates = table.column(RATE.name).to_numpy()
    hours = table.column(HOUR.name).to_numpy()
    begins = np.flatnonzero(changes(table, ATTRIBUTION_KEY))
    ends = np.append(begins, table.num_rows)[1:]
    found = np.full((len(begins), len(first_hours)), np.nan)
    for subject, (begin, end) in enumerate(zip(begins.tolist(), ends.tolist(), strict=True)):
        firsts = begin + np.searchsorted(hours[begin:end], first_hours, "left")
        lasts = begin + np.searchsorted(hours[begin:end], last_hours, "right")
        before = (-1, -1)
        for window, span in enumerate(zip(firsts.tolist(), lasts.tolist(), strict=True)):
            if span == before:
                found[subject, window] = found[subject, window - 1]
            elif span[0] < span[1]:
                found[subject, window] = _percentile(rates[span[0] : span[1]])
            before = span
    flat = found.ravel()
    offsets = np.arange(len(begins) + 1, dtype=np.int32) * len(first_hours)
    column = pa.ListArray.from_arrays(pa.array(offsets), pa.array(flat, mask=np.isnan(flat)))
    keys = table.select(ATTRIBUTION_KEY).take(pa.array(begins))
    return keys.append_column(RATES, column).cast(DEMONSTRATED_SCHEMA)


def _percentile(rates: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    """The same percentile as ``headgate.flow.account.demonstrated.demonstrated_ack_per_s``."""
    place = min(len(rates) - 1, int(DEMONSTRATED_PERCENTILE * len(rates)))
    return float(np.partition(rates, place)[place])
