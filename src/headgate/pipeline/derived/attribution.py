"""The tables ``demonstrated_rates`` and ``attribution``, which follow from ``intervals``."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame, SparkSession

from headgate.base.units import MIB
from headgate.pipeline.derived.derived_table import NearInputs, SourceFiles
from headgate.pipeline.steps import attribution
from headgate.pipeline.store.clustering import clustered
from headgate.pipeline.store.delta_log import TableFile
from headgate.pipeline.store.log_changes import SourceChange, followed_or_new
from headgate.pipeline.store.spark_reader import read_files
from headgate.pipeline.tables.attribution import ATTRIBUTION, DEMONSTRATED_LOOK_BACK_NS
from headgate.pipeline.tables.columns import HOUR_NS
from headgate.pipeline.tables.demonstrated_rates import DEMONSTRATED_RATES
from headgate.pipeline.tables.intervals import INTERVALS
from headgate.pipeline.tables.touched_minutes import HOUR_MINUTES, TouchedMinutes
from headgate.record.fields import Kind

BROADCAST_BYTES_MAX: Final = 8 * MIB
"""Size of the files with demonstrated rates up to which every worker gets all of them."""

BROADCAST_MINUTES_MAX: Final = 5_000_000
"""Minutes up to which every worker gets all counts of their topics' waiters, which the driver
gathers. With a limit in force on one topic in ten, they are a twentieth of the minutes."""


class DemonstratedRates(NearInputs):
    """The rates that a subscription's consumers have shown in each minute of an hour.

    A row has an hour. The rates of the minutes that are not touched come from the row that the
    table has, which follows from bronze like the others.
    """

    table = DEMONSTRATED_RATES
    look_back_hours = 0
    minutes_back = 0
    is_by_minute = True
    has_hour_rows = True
    kinds = (Kind.SUBSCRIPTION.value,)

    def more_inputs(self, root: str, touched: TouchedMinutes) -> list[TableFile]:
        return followed_or_new(root, DEMONSTRATED_RATES).files_of_hours(touched.partial)

    def rows(
        self, spark: SparkSession, root: str, files: list[TableFile], touched: TouchedMinutes
    ) -> DataFrame | None:
        before = self.more_inputs(root, touched)
        if not files and not before:
            return None
        return attribution.hourly_rates(
            read_files(spark, root, INTERVALS, files, attribution.MINUTE_COLUMNS),
            read_files(spark, root, DEMONSTRATED_RATES, before),
            touched,
        )


class Attribution(NearInputs):
    """Verdicts by minute. A consumer's demonstrated rate looks back to the start of the day that
    ends with the minute's hour, so later minutes follow from earlier ones, and not the reverse."""

    table = ATTRIBUTION
    look_back_hours = DEMONSTRATED_LOOK_BACK_NS // HOUR_NS
    minutes_back = 0
    is_by_minute = True
    is_in_input_order = True
    kinds = (Kind.SUBSCRIPTION.value,)

    def touched(self, root: str, change: SourceChange, live: SourceFiles) -> TouchedMinutes:
        """The changed minutes, those after them in the hour, and the hours of the next day."""
        del root
        changed, there = change.minutes, live.hours()
        later = TouchedMinutes(
            {hour: range(minutes.start, HOUR_MINUTES) for hour, minutes in changed.items()}
        )
        ahead = range(1, self.look_back_hours + 1)
        return later | TouchedMinutes.whole(
            hour for hour in there if any(hour - hours in changed for hours in ahead)
        )

    def more_inputs(self, root: str, touched: TouchedMinutes) -> list[TableFile]:
        # Rates follow from intervals, and are up to date with them before verdicts are.
        back = range(self.look_back_hours + 1)
        return followed_or_new(root, DEMONSTRATED_RATES).files_of_hours(
            {hour - hours for hour in touched for hours in back}
        )

    def rows(
        self, spark: SparkSession, root: str, files: list[TableFile], touched: TouchedMinutes
    ) -> DataFrame | None:
        if not files:
            return None
        known = self.more_inputs(root, touched)
        is_small = (
            sum(file.size_bytes for file in known) <= BROADCAST_BYTES_MAX
            and sum(file.rows for file in files) <= BROADCAST_MINUTES_MAX
        )
        hourly = read_files(spark, root, DEMONSTRATED_RATES, known)
        judged = attribution.attribution(
            read_files(spark, root, INTERVALS, files, attribution.MINUTE_COLUMNS),
            attribution.rates_up_to(hourly, touched),
            touched,
            broadcast=is_small,
        )
        return judged if is_small else clustered(judged, ATTRIBUTION)
