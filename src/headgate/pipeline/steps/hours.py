"""The hour of a row, by the columns that partition every table by time."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from headgate.pipeline.tables.columns import DAY_HOURS

HOUR_COLUMNS: Final = ("date", "hour")
"""Columns that :func:`hour_of` uses."""


def hour_of() -> Column:
    """The hour of a row since the epoch. A condition on it is subject to partition pruning."""
    return F.unix_date("date").cast("bigint") * F.lit(DAY_HOURS) + F.col("hour")
