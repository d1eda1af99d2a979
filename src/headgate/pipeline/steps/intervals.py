"""The pipeline's steps: ``DataFrame -> DataFrame``. No session, no input or output, no collect.

Rows are brought together by subject and sorted by Spark; what is done with them is a pure kernel
over Arrow tables, the same for a batch and for a stream's trigger. Those that judge are in
:mod:`headgate.pipeline.steps.attribution`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from headgate.pipeline.kernels.coverage_gaps import Coverage
from headgate.pipeline.kernels.evictions import INPUT_COLUMNS as EVENT_COLUMNS
from headgate.pipeline.kernels.evictions import evictions_table
from headgate.pipeline.kernels.intervals import SORT_COLUMNS, SUBJECT_COLUMNS, interval_table
from headgate.pipeline.kernels.quota_usage import INPUT_COLUMNS as TOPIC_MINUTE_COLUMNS
from headgate.pipeline.kernels.quota_usage import quota_usage_table
from headgate.pipeline.tables.arrow_types import whole_subjects
from headgate.pipeline.tables.bronze import SAMPLED_KINDS
from headgate.pipeline.tables.intervals import INTERVALS, TOPIC_KEY, TOPIC_ORDER
from headgate.pipeline.tables.quotas import EVENT_IDENTITY, EVICTION_EVENT, EVICTIONS, QUOTA_USAGE
from headgate.pipeline.tables.schemas import table_schema
from headgate.record.fields import Kind

TOPIC_COLUMNS: Final = ("kind", *TOPIC_MINUTE_COLUMNS)
"""What :func:`quota_usage` uses of ``intervals``."""

EVICTION_COLUMNS: Final = tuple(dict.fromkeys(("event", *EVENT_COLUMNS)))
"""What :func:`evictions` uses of ``bronze_events``."""


def intervals(bronze: DataFrame, hours: Collection[int], arrived: Coverage) -> DataFrame:
    """Rows of ``intervals`` for some hours (numbers since the epoch), from ``bronze_samples``.

    ``bronze`` may hold more than is needed; it must hold all rows whose window ends within two
    minutes of one of the hours, or in a gap. ``arrived``: what the windows say of the hours.
    """
    kinds = [kind.value for kind in SAMPLED_KINDS]
    prepared = (
        bronze.where(F.col("kind").isin(kinds))
        .drop("date", "hour", "window_end")
        .repartition(*SUBJECT_COLUMNS)
        .sortWithinPartitions(*SORT_COLUMNS)
    )
    wanted = frozenset(hours)

    def kernel(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table in whole_subjects(batches, SUBJECT_COLUMNS):
            for kind in table.column("kind").unique().to_pylist():
                rows = table.filter(pc.equal(table.column("kind"), kind))
                yield from interval_table(rows, Kind(kind), wanted, arrived).to_batches()

    return prepared.mapInArrow(kernel, table_schema(INTERVALS))


def quota_usage(minutes: DataFrame, hours: Collection[int]) -> DataFrame:
    """Rows of ``quota_usage`` for some hours, from ``intervals`` of these and the hour before."""
    wanted = frozenset(hours)

    def kernel(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table in whole_subjects(batches, TOPIC_KEY):
            yield from quota_usage_table(table, wanted).to_batches()

    return _minutes_by_topic(minutes).mapInArrow(kernel, table_schema(QUOTA_USAGE))


def _minutes_by_topic(minutes: DataFrame) -> DataFrame:
    return (
        minutes.where(F.col("kind") == Kind.TOPIC.value)
        .select(*TOPIC_MINUTE_COLUMNS)
        .repartition(*TOPIC_KEY)
        .sortWithinPartitions(*TOPIC_ORDER)
    )


def evictions(events: DataFrame, hours: Collection[int]) -> DataFrame:
    """Rows of ``evictions`` for some hours, from ``bronze_events`` of these."""
    wanted = frozenset(hours)

    def kernel(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table in whole_subjects(batches, EVENT_IDENTITY):
            yield from evictions_table(table, wanted).to_batches()

    return (
        events.where(F.col("event") == EVICTION_EVENT)
        .select(*EVENT_COLUMNS)
        .repartition(*EVENT_IDENTITY)
        .sortWithinPartitions(*EVENT_IDENTITY)
        .mapInArrow(kernel, table_schema(EVICTIONS))
    )
