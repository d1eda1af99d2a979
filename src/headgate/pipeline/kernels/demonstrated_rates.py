"""Demonstrated rates of subscriptions: by hour, as they were up to each minute, and over all time.

The input has one row for each minute that demonstrates a rate. There are few such minutes.
"""

from __future__ import annotations

from bisect import insort
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headgate.flow.account.demonstrated import DEMONSTRATED_PERCENTILE
from headgate.pipeline.kernels.array_types import Doubles, Longs
from headgate.pipeline.tables.arrow_types import (
    arrow_schema,
    changes,
    partition_columns,
    table_arrow_schema,
)
from headgate.pipeline.tables.attribution import ATTRIBUTION_KEY
from headgate.pipeline.tables.columns import DAY_HOURS, DOUBLE, HOUR_NS, LONG, TableColumn
from headgate.pipeline.tables.demonstrated_rates import DEMONSTRATED_RATES, KEY_COLUMNS, RATES
from headgate.pipeline.tables.touched_minutes import HOUR_MINUTES, TouchedMinutes

HOUR: Final = TableColumn("minute_hour", LONG, "Hour of the minute, counted since the epoch.")
MINUTE: Final = TableColumn("minute_of_hour", LONG, "The minute, 0 to 59.")
RATE: Final = TableColumn("minute_rate_per_s", DOUBLE, "Messages acknowledged per second in it.")
KEYS: Final = KEY_COLUMNS

MINUTE_RATES: Final = (*KEYS, HOUR, MINUTE, RATE)
"""Columns of a minute that demonstrates a rate."""

RUNNING: Final = (*KEYS, HOUR, RATES)
"""Columns of rates as they were up to each minute of an hour."""

OVERALL: Final = (*KEYS, RATE)
"""Columns of a rate over all minutes."""


def hourly_rates(table: pa.Table) -> pa.Table:
    """The rows of ``demonstrated_rates``, from minutes (:data:`MINUTE_RATES`) that are sorted by
    subscription and hour. Of a minute that is there twice, the last row counts."""
    hours, minutes = _longs(table, HOUR), _longs(table, MINUTE)
    begins = changes(table, (*ATTRIBUTION_KEY, HOUR.name))
    first = np.flatnonzero(begins)
    rates = np.full((len(first), HOUR_MINUTES), np.nan)
    rates[np.cumsum(begins) - 1, minutes] = table.column(RATE.name).to_numpy()
    columns: dict[str, Any] = {
        **partition_columns(hours[first] * HOUR_NS),
        **{name: table.column(name).take(pa.array(first)) for name in ATTRIBUTION_KEY},
        RATES.name: _lists(rates),
    }
    schema = table_arrow_schema(DEMONSTRATED_RATES)
    return pa.table([columns[name] for name in schema.names], names=schema.names).cast(schema)


def running_rates(table: pa.Table, touched: TouchedMinutes, look_back_hours: int) -> pa.Table:
    """The demonstrated rate up to each of some minutes (:data:`RUNNING`), for each subscription and
    hour that has any.

    ``table`` has rows of ``demonstrated_rates``, sorted by subscription and time. A rate is taken
    over the hours of look-back before the minute's hour, and the minutes of that hour up to it.
    """
    days = table.column("date").cast(pa.int32()).to_numpy().astype(np.int64)
    hours = days * DAY_HOURS + _longs_of(table, "hour")
    rates = _matrix(table)
    begins = np.flatnonzero(changes(table, ATTRIBUTION_KEY))
    ends = np.append(begins, table.num_rows)[1:]
    places: list[int] = []
    found_hours: list[int] = []
    found: list[Doubles] = []
    wanted = sorted(touched)
    for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
        own = hours[begin:end]
        firsts = begin + np.searchsorted(own, [hour - look_back_hours for hour in wanted], "left")
        lasts = begin + np.searchsorted(own, wanted, "left")
        for hour, first, last in zip(wanted, firsts.tolist(), lasts.tolist(), strict=True):
            here = rates[last] if last < end and hours[last] == hour else None
            running = _running(rates[first:last], here, touched[hour])
            if running is not None:
                places.append(begin)
                found_hours.append(hour)
                found.append(running)
    keys = table.select(ATTRIBUTION_KEY).take(pa.array(places, pa.int64()))
    matrix = np.array(found).reshape(len(found), HOUR_MINUTES)
    return (
        keys.append_column(HOUR.name, pa.array(found_hours, pa.int64()))
        .append_column(RATES.name, _lists(matrix))
        .cast(arrow_schema(RUNNING))
    )


def _running(before: Doubles, here: Doubles | None, minutes: range) -> Doubles | None:
    """The rate up to each of some minutes of an hour; NaN elsewhere. None: there is none at all.

    ``before``: the rates of the hours before, ``here`` those of the hour itself.
    """
    ordered: list[float] = np.sort(before[~np.isnan(before)]).tolist()
    known: list[tuple[int, float]] = []
    if here is not None:
        places = np.flatnonzero(~np.isnan(here[: minutes.stop]))
        known = list(zip(places.tolist(), here[places].tolist(), strict=True))
    if not ordered and not known:
        return None
    found = np.full(HOUR_MINUTES, np.nan)
    reached = minutes.start
    for minute, rate in known:
        if ordered and minute > reached:
            found[reached:minute] = _percentile(ordered)
        reached = max(reached, minute)
        insort(ordered, rate)
    found[reached : minutes.stop] = _percentile(ordered)
    return found


def demonstrated_rates(table: pa.Table) -> pa.Table:
    """One row (:data:`OVERALL`) for each subscription: its rate over all minutes of the table,
    which has the key and :data:`RATE` and is sorted by the key."""
    rates = table.column(RATE.name).to_numpy()
    begins = np.flatnonzero(changes(table, ATTRIBUTION_KEY))
    ends = np.append(begins, table.num_rows)[1:]
    found = [
        _percentile(np.sort(rates[begin:end]).tolist())
        for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)
    ]
    keys = table.select(ATTRIBUTION_KEY).take(pa.array(begins))
    return keys.append_column(RATE.name, pa.array(found, pa.float64())).cast(arrow_schema(OVERALL))


def _percentile(ordered: list[float]) -> float:
    """The same percentile as ``headgate.flow.account.demonstrated.demonstrated_ack_per_s``."""
    return ordered[min(len(ordered) - 1, int(DEMONSTRATED_PERCENTILE * len(ordered)))]


def _longs(table: pa.Table, column: TableColumn) -> Longs:
    return _longs_of(table, column.name)


def _longs_of(table: pa.Table, name: str) -> Longs:
    return np.asarray(table.column(name).to_numpy(), dtype=np.int64)


def _matrix(table: pa.Table) -> npt.NDArray[np.float64]:
    """The lists of rates, one row each; NaN where a minute has none."""
    flat = pc.list_flatten(table.column(RATES.name))
    values = np.asarray(pc.fill_null(flat, np.nan).to_numpy(), dtype=np.float64)
    return values.reshape(table.num_rows, HOUR_MINUTES)


def _lists(rates: npt.NDArray[np.float64]) -> pa.ListArray:
    """Lists of rates; null where a minute has none."""
    flat = rates.ravel()
    offsets = np.arange(len(rates) + 1, dtype=np.int32) * HOUR_MINUTES
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(flat, mask=np.isnan(flat)))
