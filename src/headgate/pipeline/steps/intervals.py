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
from headgate.pipeline.steps.joins import rows_with_key_of
from headgate.pipeline.steps.kernel_runner import per_key
from headgate.pipeline.tables.bronze import SAMPLED_KINDS
from headgate.pipeline.tables.columns import MINUTE_NS
from headgate.pipeline.tables.intervals import INTERVALS
from headgate.pipeline.tables.schemas import table_schema
from headgate.pipeline.tables.touched_minutes import HOUR_MINUTES, TouchedMinutes
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


def samples_near(bronze: DataFrame, needed: TouchedMinutes) -> DataFrame:
    """The rows whose window ends in these minutes."""
    last_minute = F.expr(f"(window_end_ns - 1) div {MINUTE_NS}")
    wanted = F.lit(False)
    for hour, minutes in sorted(needed.items()):
        first = hour * HOUR_MINUTES + minutes.start
        wanted = wanted | last_minute.between(first, first + len(minutes) - 1)
    return bronze.where(wanted)


def with_earlier_samples(near: DataFrame, earlier: DataFrame, since_ns: int) -> DataFrame:
    """The rows, and the ``earlier`` ones of subjects whose counting began at or after an instant.

    Rows that are in both are there twice, which :func:`intervals` does not mind.
    """
    began = near.where(F.col("counting_since_ns") >= since_ns)
    return near.unionByName(rows_with_key_of(earlier, began, SUBJECT_COLUMNS))


def _intervals_of_kinds(samples: pa.Table, hours: Collection[int], coverage: Coverage) -> pa.Table:
    """A chunk of sorted rows may hold several kinds; the kernel takes one at a time."""
    kinds = samples.column("kind")
    return pa.concat_tables(
        interval_table(samples.filter(pc.equal(kinds, kind)), Kind(kind), hours, coverage)
        for kind in kinds.unique().to_pylist()
    )
