"""Runs kernels in Spark, over all rows of a key or over batches of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from headgate.pipeline.one_task import together
from headgate.pipeline.tables.arrow_types import whole_subjects

Kernel = Callable[[pa.Table], pa.Table]
"""A pure function over Arrow tables; workers get it pickled."""


def per_key(
    frame: DataFrame, key: Sequence[str], order: Sequence[str], kernel: Kernel, schema: StructType
) -> DataFrame:
    """Rows of ``schema`` that a kernel makes of all rows with an equal ``key``.

    The kernel gets all rows of one or more keys at once, sorted by ``order``, which begins with the
    key.
    """

    names = schema.names  # Spark takes columns by position, and would not notice another order

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table in whole_subjects(batches, key):
            yield from kernel(table).select(names).to_batches()

    return together(frame, key).sortWithinPartitions(*order).mapInArrow(run, schema)


def per_batch(frame: DataFrame, kernel: Kernel, schema: StructType) -> DataFrame:
    """Rows of ``schema`` that a kernel makes of batches of rows, where they were read."""

    names = schema.names  # Spark takes columns by position, and would not notice another order

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from kernel(pa.Table.from_batches([batch])).select(names).to_batches()

    return frame.mapInArrow(run, schema)
