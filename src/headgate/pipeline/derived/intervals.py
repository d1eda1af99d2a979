"""The table ``intervals``, which follows from ``bronze_samples``."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from pyspark.sql import DataFrame, SparkSession

from headgate.pipeline.derived.coverage import GAP_HOURS_MAX, windows_around, windows_of
from headgate.pipeline.derived.derived_table import DerivedTable, passes
from headgate.pipeline.kernels.coverage_gaps import (
    CoverageGap,
    coverage,
    coverage_gaps,
    hours_across,
)
from headgate.pipeline.steps.intervals import intervals
from headgate.pipeline.store.delta_log import TableFile
from headgate.pipeline.store.spark_reader import read_files
from headgate.pipeline.tables.bronze import BATCH_KIND, BRONZE_SAMPLES
from headgate.pipeline.tables.columns import HOUR_NS
from headgate.pipeline.tables.intervals import INTERVALS, INTERVALS_LOOK_BACK_NS


class Intervals(DerivedTable):
    """An hour follows from its samples, from those two minutes around it, and from the ends of
    every coverage gap that touches it."""

    table = INTERVALS
    look_back_hours = GAP_HOURS_MAX

    def touched(
        self, root: str, new: Collection[TableFile], live: Collection[TableFile]
    ) -> set[int]:
        """Hours near the new rows, and all hours of each gap that the new rows begin or end."""
        touched = _near_hours(new)
        for hours in passes(touched):
            part = [file for file in new if _is_near(file, hours)]
            around = windows_around(root, live, hours)
            touched |= hours_across(coverage_gaps(around), windows_of(root, part))
        return touched

    def inputs(self, live: Collection[TableFile], hours: Collection[int]) -> list[TableFile]:
        around = range(-GAP_HOURS_MAX, GAP_HOURS_MAX + 1)
        return [file for file in live if any(file.hour + ahead in hours for ahead in around)]

    def rows(
        self, spark: SparkSession, root: str, files: list[TableFile], hours: Collection[int]
    ) -> DataFrame | None:
        arrived = coverage(windows_around(root, files, hours), hours)
        samples = [
            file
            for file in files
            if file.partition["kind"] != BATCH_KIND
            and (_is_near(file, hours) or any(_touches(file, gap) for gap in arrived.gaps))
        ]
        if not samples:
            return None
        return intervals(read_files(spark, root, BRONZE_SAMPLES, samples), hours, arrived)


def _near_hours(files: Iterable[TableFile]) -> set[int]:
    """Hours whose intervals depend on rows of the files, whatever else arrived."""
    hours: set[int] = set()
    for file in files:
        first, last = file.span_ns
        hours.update(
            range(
                (first - INTERVALS_LOOK_BACK_NS) // HOUR_NS,
                (last + INTERVALS_LOOK_BACK_NS) // HOUR_NS + 1,
            )
        )
    return hours


def _is_near(file: TableFile, hours: Collection[int]) -> bool:
    return not _near_hours([file]).isdisjoint(hours)


def _touches(file: TableFile, gap: CoverageGap) -> bool:
    first, last = file.span_ns
    return first < gap.until_ns and last >= gap.from_ns - 1
