"""The hour of a row, by the columns that partition every table by time."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from headgate.pipeline.tables.columns import DAY_HOURS
from headgate.pipeline.tables.touched_minutes import HOUR_MINUTES, TouchedMinutes

HOUR_COLUMNS: Final = ("date", "hour")
"""Columns that :func:`hour_of` uses."""


def hour_of() -> Column:
    """The hour of a row since the epoch. A condition on it is subject to partition pruning."""
    return F.unix_date("date").cast("bigint") * F.lit(DAY_HOURS) + F.col("hour")


def only_minutes(rows: DataFrame, touched: TouchedMinutes) -> DataFrame:
    """The rows with these minutes, of a table with ``minute``.

    Where whole hours are meant, nothing is compared: the caller has read files of these, or does
    not mind others. No other column is needed, because tasks that read files of S3 bring only those
    columns that a step names.
    """
    if not touched.partial:
        return rows
    number = F.expr("unix_seconds(minute) div 60")
    wanted = F.expr("unix_seconds(minute) div 3600").isin(sorted(set(touched) - touched.partial))
    for partial in sorted(touched.partial):
        first, minutes = partial * HOUR_MINUTES, touched[partial]
        wanted = wanted | number.between(first + minutes.start, first + minutes.stop - 1)
    return rows.where(wanted)
