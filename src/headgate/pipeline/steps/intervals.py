"""The step from samples to ``intervals``: what happened in each minute to each subject."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from headgate.pipeline.kernels.coverage_gaps import Coverage
from headgate.pipeline.kernels.intervals import SORT_COLUMNS, SUBJECT_COLUMNS, interval_table
from headgate.pipeline.steps.kernel_runner import per_key
from headgate.pipeline.tables.bronze import SAMPLED_KINDS
from headgate.pipeline.tables.intervals import INTERVALS
from headgate.pipeline.tables.schemas import table_schema
from headgate.record.fields import Kind


def intervals(bronze: DataFrame, hours: Collection[int], coverage: Coverage) -> DataFrame:
    """Rows of ``intervals`` for some hours (numbers since the epoch), from ``bronze_samples``.

    ``bronze`` must hold all rows whose window ends within two minutes of one of the hours, or in a
    coverage gap that touches one; it may hold more. ``coverage``: which windows arrived.
    """
    kinds = [kind.value for kind in SAMPLED_KINDS]
    samples = bronze.where(F.col("kind").isin(kinds)).drop("date", "hour", "window_end")
    kernel = partial(_intervals_of_kinds, hours=frozenset(hours), coverage=coverage)
    return per_key(samples, SUBJECT_COLUMNS, SORT_COLUMNS, kernel, table_schema(INTERVALS))


def _intervals_of_kinds(samples: pa.Table, hours: Collection[int], coverage: Coverage) -> pa.Table:
    """A chunk of sorted rows may hold several kinds; the kernel takes one at a time."""
    kinds = samples.column("kind")
    return pa.concat_tables(
        interval_table(samples.filter(pc.equal(kinds, kind)), Kind(kind), hours, coverage)
        for kind in kinds.unique().to_pylist()
    )
