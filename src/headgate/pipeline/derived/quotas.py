"""The tables about backlog quotas: ``quota_usage`` and ``evictions``."""

from __future__ import annotations

from collections.abc import Collection

from pyspark.sql import DataFrame

from headgate.pipeline.derived.derived_table import NearTable, SourceFiles
from headgate.pipeline.kernels.breach import WINDOW_MINUTES
from headgate.pipeline.kernels.quota_forecast import FORECAST_MINUTES
from headgate.pipeline.steps import quotas
from headgate.pipeline.store.log_changes import SourceChange
from headgate.pipeline.tables.quotas import EVICTIONS, QUOTA_USAGE
from headgate.pipeline.tables.touched_minutes import TouchedMinutes
from headgate.record.fields import Kind


class QuotaUsage(NearTable):
    """Use and forecast of quotas by minute; a forecast looks back an hour."""

    table = QUOTA_USAGE
    look_back_hours = 1
    minutes_back = WINDOW_MINUTES
    is_by_minute = True
    columns = quotas.TOPIC_COLUMNS
    kinds = (Kind.TOPIC.value,)

    def touched(self, root: str, change: SourceChange, live: SourceFiles) -> TouchedMinutes:
        """The minutes whose window has a changed one, and those that carry their forecasts."""
        return super().touched(root, change, live).aligned(FORECAST_MINUTES)

    def step(self, rows: DataFrame, hours: Collection[int]) -> DataFrame:
        return quotas.quota_usage(rows, hours)


class Evictions(NearTable):
    """One row for each eviction event of the broker."""

    table = EVICTIONS
    look_back_hours = 0
    minutes_back = 0
    has_long_texts = True
    columns = quotas.EVICTION_COLUMNS

    def step(self, rows: DataFrame, hours: Collection[int]) -> DataFrame:
        return quotas.evictions(rows, hours)
