"""The tables about limiters, which follow from ``intervals``."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from headgate.pipeline.derived.derived_table import NearInputs, NearTable
from headgate.pipeline.steps import limiters, publishing
from headgate.pipeline.steps.hours import only_minutes
from headgate.pipeline.store.delta_log import TableFile
from headgate.pipeline.store.log_changes import followed
from headgate.pipeline.store.spark_reader import read_files
from headgate.pipeline.tables.bronze import BRONZE_SAMPLES
from headgate.pipeline.tables.intervals import INTERVALS
from headgate.pipeline.tables.publishing import PUBLISH_ATTRIBUTION, THROTTLE_TIMELINE
from headgate.pipeline.tables.touched_minutes import TouchedMinutes
from headgate.record.fields import Kind

_WINDOW_MINUTES: Final = 1


class PublishAttribution(NearTable):
    """What held producers, by minute; a minute's limit is that of its end or of the one before."""

    table = PUBLISH_ATTRIBUTION
    look_back_hours = 1
    minutes_back = 1
    is_by_minute = True
    columns = publishing.MINUTE_COLUMNS
    kinds = (Kind.TOPIC.value, Kind.LIMITER.value)

    def step(self, rows: DataFrame, hours: Collection[int]) -> DataFrame:
        return publishing.publish_attribution(rows, hours)


class ThrottleTimeline(NearInputs):
    """The use of limiters by minute, with the clients that waited, from bronze. ``intervals``
    follows from bronze, so a change of bronze changes the source, too."""

    table = THROTTLE_TIMELINE
    look_back_hours = 0
    minutes_back = 0
    is_by_minute = True
    kinds = (Kind.LIMITER.value,)

    def more_inputs(self, root: str, touched: TouchedMinutes) -> list[TableFile]:
        # A subject that ends within a window has its row in that window, a minute later at most.
        late = touched.widened(0, _WINDOW_MINUTES)
        return [
            file
            for file in followed(root, BRONZE_SAMPLES.name).files_of_hours(touched)
            if file.partition["kind"] in self.kinds and late.overlaps(*file.span_ns)
        ]

    def rows(
        self, spark: SparkSession, root: str, files: list[TableFile], touched: TouchedMinutes
    ) -> DataFrame | None:
        if not files:
            return None
        samples = self.more_inputs(root, touched)
        minutes = read_files(spark, root, INTERVALS, files, limiters.LIMITER_MINUTE_COLUMNS)
        return limiters.throttle_timeline(
            only_minutes(minutes, touched),
            read_files(spark, root, BRONZE_SAMPLES, samples, limiters.LIMITER_SAMPLE_COLUMNS),
            touched,
        )
