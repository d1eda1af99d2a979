"""The table ``intervals``, which follows from ``bronze_samples``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from headgate.pipeline.derived.coverage import GAP_HOURS_MAX, windows_around, windows_of
from headgate.pipeline.derived.derived_table import DerivedTable, SourceFiles, passes
from headgate.pipeline.kernels.coverage_gaps import (
    Coverage,
    CoverageGap,
    coverage,
    coverage_gaps,
    hours_across,
)
from headgate.pipeline.kernels.window_order import is_steady
from headgate.pipeline.steps.hours import only_minutes
from headgate.pipeline.steps.intervals import intervals, samples_near, with_earlier_samples
from headgate.pipeline.store.delta_log import TableFile
from headgate.pipeline.store.footers import column_max
from headgate.pipeline.store.log_changes import SourceChange
from headgate.pipeline.store.spark_reader import read_files
from headgate.pipeline.store.table_store import store_of
from headgate.pipeline.tables.bronze import BATCH_KIND, BRONZE_SAMPLES
from headgate.pipeline.tables.columns import HOUR_NS, MINUTE_NS
from headgate.pipeline.tables.intervals import INTERVALS, INTERVALS_LOOK_BACK_NS
from headgate.pipeline.tables.touched_minutes import TouchedMinutes

_LOOK_BACK_MINUTES: Final = INTERVALS_LOOK_BACK_NS // MINUTE_NS

_COUNTING_SINCE: Final = "counting_since_ns"


class Intervals(DerivedTable):
    """A minute follows from its samples and from those two minutes around it, where windows follow
    each other. Otherwise an hour follows from its samples, from those two minutes around it, and
    from the ends of every coverage gap that touches it."""

    table = INTERVALS
    look_back_hours = GAP_HOURS_MAX
    is_by_minute = True

    def touched(self, root: str, change: SourceChange, live: SourceFiles) -> TouchedMinutes:
        """Minutes near the new rows, and all hours of each gap that the new rows begin or end. Of
        an hour in which windows are missing near the new rows, all minutes."""
        near = _near(change.files)
        touched = near
        for hours in passes(near):
            part = [file for file in change.files if not hours.isdisjoint(_near([file]))]
            around = windows_around(root, _files_around(live, hours), hours)
            # Rows of scrapes have no windows.
            new = windows_of(root, part)
            unsteady = {
                hour
                for hour in hours
                if not new.num_rows or not is_steady(around, *_input_span(near, hour))
            }
            across = hours_across(coverage_gaps(around), new)
            touched |= TouchedMinutes.whole(unsteady | across)
        return touched

    def inputs(self, live: SourceFiles, touched: TouchedMinutes) -> list[TableFile]:
        return _files_around(live, touched)

    def read_for(
        self, root: str, files: list[TableFile], touched: TouchedMinutes
    ) -> list[TableFile]:
        """Without the ends of gaps, which are few files, and what the driver reads."""
        del root
        needed = _needed(touched)
        return [
            file
            for file in files
            if file.partition["kind"] != BATCH_KIND and needed.overlaps(*file.span_ns)
        ]

    def rows(
        self, spark: SparkSession, root: str, files: list[TableFile], touched: TouchedMinutes
    ) -> DataFrame | None:
        arrived = coverage(windows_around(root, files, touched), touched)
        samples = [
            file
            for file in files
            if file.partition["kind"] != BATCH_KIND
            and (
                not touched.keys().isdisjoint(_near([file]))
                or any(_touches(file, gap) for gap in arrived.gaps)
            )
        ]
        if not samples:
            return None
        if len(touched.partial) < len(touched):
            rows = read_files(spark, root, BRONZE_SAMPLES, samples)
            return only_minutes(intervals(rows, touched, arrived), touched)
        return _rows_of_minutes(spark, root, samples, touched, arrived)


def _rows_of_minutes(
    spark: SparkSession,
    root: str,
    samples: list[TableFile],
    touched: TouchedMinutes,
    arrived: Coverage,
) -> DataFrame | None:
    """The rows of parts of hours, from the samples near them.

    Where a subject's counting begins again, its level before is that of its last row, however long
    ago in the hour that was. So the subjects for which it begins also get their earlier rows.
    """
    needed = _needed(touched)
    near = [file for file in samples if needed.overlaps(*file.span_ns)]
    if not near:
        return None
    since_ns = min(hour * HOUR_NS + needed[hour].start * MINUTE_NS for hour in needed)
    rows = samples_near(read_files(spark, root, BRONZE_SAMPLES, near), needed)
    paths = [file.path for file in near]
    begins_ns = column_max(store_of(root), BRONZE_SAMPLES.name, paths, _COUNTING_SINCE)
    if begins_ns is None or begins_ns >= since_ns:
        earlier = read_files(spark, root, BRONZE_SAMPLES, samples)
        rows = with_earlier_samples(rows, earlier, since_ns)
    return only_minutes(intervals(rows, touched, arrived), touched)


def _needed(touched: TouchedMinutes) -> TouchedMinutes:
    """The minutes of windows that some minutes follow from."""
    return touched.widened(_LOOK_BACK_MINUTES, _LOOK_BACK_MINUTES)


def _files_around(live: SourceFiles, hours: Iterable[int]) -> list[TableFile]:
    around = range(-GAP_HOURS_MAX, GAP_HOURS_MAX + 1)
    return live.files_of_hours({hour + ahead for hour in hours for ahead in around})


def _near(files: Iterable[TableFile]) -> TouchedMinutes:
    """Minutes whose intervals depend on rows of the files, whatever else arrived."""
    found = TouchedMinutes()
    for file in files:
        first, last = file.span_ns
        found |= TouchedMinutes.between(
            first - INTERVALS_LOOK_BACK_NS, last + INTERVALS_LOOK_BACK_NS
        )
    return found


def _input_span(near: TouchedMinutes, hour: int) -> tuple[int, int]:
    """The time of the windows that the touched minutes of an hour follow from."""
    start_ns = hour * HOUR_NS
    return (
        start_ns + near[hour].start * MINUTE_NS - INTERVALS_LOOK_BACK_NS,
        start_ns + near[hour].stop * MINUTE_NS + INTERVALS_LOOK_BACK_NS,
    )


def _touches(file: TableFile, gap: CoverageGap) -> bool:
    first, last = file.span_ns
    return first < gap.until_ns and last >= gap.from_ns - 1
