"""The tables about limiters, which follow from ``intervals``."""

from __future__ import annotations

from collections.abc import Collection

from pyspark.sql import DataFrame, SparkSession

from headgate.pipeline.derived.derived_table import HourlyInputs, HourlyTable
from headgate.pipeline.steps import limiters, publishing
from headgate.pipeline.store.delta_log import TableFile, ensure_table, table_files
from headgate.pipeline.store.spark_reader import read_files
from headgate.pipeline.tables.bronze import BRONZE_SAMPLES
from headgate.pipeline.tables.intervals import INTERVALS
from headgate.pipeline.tables.publishing import PUBLISH_ATTRIBUTION, THROTTLE_TIMELINE
from headgate.record.fields import Kind


class PublishAttribution(HourlyTable):
    """What held producers, by minute; a minute's limit is that of its end or of the one before."""

    table = PUBLISH_ATTRIBUTION
    look_back_hours = 1
    columns = publishing.MINUTE_COLUMNS
    kinds = (Kind.TOPIC.value, Kind.LIMITER.value)

    def step(self, rows: DataFrame, hours: Collection[int]) -> DataFrame:
        return publishing.publish_attribution(rows, hours)


class ThrottleTimeline(HourlyInputs):
    """The use of limiters by minute, with the clients that waited, from bronze. ``intervals``
    follows from bronze, so a change of bronze changes the source, too."""

    table = THROTTLE_TIMELINE
    look_back_hours = 0
    kinds = (Kind.LIMITER.value,)

    def rows(
        self, spark: SparkSession, root: str, files: list[TableFile], hours: Collection[int]
    ) -> DataFrame | None:
        if not files:
            return None
        samples = self.inputs(table_files(ensure_table(root, BRONZE_SAMPLES)), hours)
        return limiters.throttle_timeline(
            read_files(spark, root, INTERVALS, files, limiters.LIMITER_MINUTE_COLUMNS),
            read_files(spark, root, BRONZE_SAMPLES, samples, limiters.LIMITER_SAMPLE_COLUMNS),
            hours,
        )
