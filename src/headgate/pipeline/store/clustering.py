"""The order in which Spark hands rows to the writer, so that a write makes few files.

Kernels need all rows of a subject in one task, and files are by hour. Written as they come, the
rows of each task go into a file of every hour. So the rows are brought together by partition first,
and each task writes one hour after the other.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from headgate.pipeline.one_task import is_one_task
from headgate.pipeline.tables.columns import DAY_HOURS, Table

_REBALANCE: Final = "rebalance"
"""Spark's hint: rows of one partition in one task. Adaptive execution splits a task that is large
(``spark.sql.adaptive.advisoryPartitionSizeInBytes``), and joins small ones."""

_PUBLISHED: Final = "__publishTime"

_HOUR: Final = "__publishHour"

_PUBLISHED_WITHIN_S: Final = 2
"""A message is published so soon after its window; one that ends at a full hour belongs to the hour
before."""


def clustered(rows: DataFrame, table: Table, *, by_minute: bool = False) -> DataFrame:
    """Rows of a table, those of one of its partitions in one task, hour after hour.

    With ``by_minute``, minute after minute.

    Spark sorts by one number, which takes no comparison of rows, and spills to the disk.
    """
    if is_one_task(rows.sparkSession):
        together = rows.coalesce(1)
    else:
        together = rows.hint(_REBALANCE, *(F.col(name) for name in table.partition_by))
    if "hour" not in table.partition_by:
        return together
    if by_minute:
        return together.sortWithinPartitions(F.unix_seconds("minute"))
    hour = F.unix_date("date").cast("bigint") * DAY_HOURS + F.col("hour")
    return together.sortWithinPartitions(hour)


def messages_by_hour(messages: DataFrame) -> DataFrame:
    """Messages of telemetry topics, those whose windows ended in one hour in one task, in order.

    A message that was published late is with those of another hour, and its rows are in a file of
    their own.
    """
    within = F.expr(f"{_PUBLISHED} - interval {_PUBLISHED_WITHIN_S} seconds")
    # The hint takes columns only.
    together = messages.withColumn(_HOUR, F.date_trunc("hour", within)).hint(_REBALANCE, _HOUR)
    return together.sortWithinPartitions(_PUBLISHED).drop(_HOUR)
