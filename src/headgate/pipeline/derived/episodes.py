"""The table ``episodes``, which follows from ``attribution``."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import DataFrame, SparkSession

from headgate.pipeline.derived.derived_table import DerivedTable, SourceFiles
from headgate.pipeline.kernels.episodes import NewestMinutes
from headgate.pipeline.steps import episodes
from headgate.pipeline.store.delta_log import TableFile
from headgate.pipeline.store.largest_values import largest_by
from headgate.pipeline.store.log_changes import SourceChange, followed
from headgate.pipeline.store.spark_reader import read_files
from headgate.pipeline.store.table_store import store_of
from headgate.pipeline.tables.attribution import ATTRIBUTION
from headgate.pipeline.tables.columns import MINUTE_NS
from headgate.pipeline.tables.episodes import EPISODES
from headgate.pipeline.tables.intervals import INTERVALS
from headgate.pipeline.tables.touched_minutes import TouchedMinutes
from headgate.record.fields import Kind


class Episodes(DerivedTable):
    """An hour follows from verdicts of the hours around it, and from how far telemetry reaches."""

    table = EPISODES
    look_back_hours = 1

    def touched(self, root: str, change: SourceChange, live: SourceFiles) -> TouchedMinutes:
        """The changed hours and their neighbours, into which episodes may continue. Also the last
        two hours before each: an episode that was open there has ended if telemetry continues
        without it."""
        del root
        changed = set(change.minutes)
        there = set(live.hours())
        touched = set(changed)
        for hour in changed:
            touched |= there & {hour - 1, hour + 1}
            last = max((other for other in there if other < hour), default=hour)
            touched |= there & {last - 1, last}
        return TouchedMinutes.whole(touched)

    def inputs(self, live: SourceFiles, touched: TouchedMinutes) -> list[TableFile]:
        return live.files_of_hours(_around(touched))

    def more_inputs(self, root: str, touched: TouchedMinutes) -> list[TableFile]:
        # Verdicts follow from intervals, and are up to date with them before episodes are.
        return [
            file
            for file in followed(root, INTERVALS.name).files_of_hours(_around(touched))
            if file.partition["kind"] == Kind.SUBSCRIPTION.value
        ]

    def rows(
        self, spark: SparkSession, root: str, files: list[TableFile], touched: TouchedMinutes
    ) -> DataFrame | None:
        if not files:
            return None
        minutes = self.more_inputs(root, touched)
        return episodes.episodes(
            read_files(spark, root, ATTRIBUTION, files, episodes.VERDICT_COLUMNS),
            read_files(spark, root, INTERVALS, minutes, episodes.MINUTE_COLUMNS),
            touched,
            _newest_minutes(root, files),
        )


def _around(hours: Iterable[int]) -> set[int]:
    return {hour + ahead for hour in hours for ahead in (-1, 0, 1)}


def _newest_minutes(root: str, files: Iterable[TableFile]) -> NewestMinutes:
    """The last minute of ``attribution``, by cluster and hour of these files; and its last hour."""
    store = store_of(root)
    files = list(files)
    ends = store.each(
        (file.path for file in files),
        lambda path: largest_by(store, ATTRIBUTION.name, path, "cluster", "to_ns"),
    )
    last: dict[tuple[str | None, int], int] = {}
    for file, found in zip(files, ends, strict=True):
        for cluster, end_ns in found.items():
            newest = (end_ns - 1) // MINUTE_NS
            for hour in (file.hour - 1, file.hour):
                last[cluster, hour] = max(last.get((cluster, hour), newest), newest)
    return NewestMinutes(last, followed(root, ATTRIBUTION.name).hours()[-1])
