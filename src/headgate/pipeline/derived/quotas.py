"""The tables about backlog quotas: ``quota_usage`` and ``evictions``."""

from __future__ import annotations

from collections.abc import Collection

from pyspark.sql import DataFrame

from headgate.pipeline.derived.derived_table import HourlyTable
from headgate.pipeline.steps import quotas
from headgate.pipeline.tables.quotas import EVICTIONS, QUOTA_USAGE
from headgate.record.fields import Kind


class QuotaUsage(HourlyTable):
    """Use and forecast of quotas by minute; a forecast looks back an hour."""

    table = QUOTA_USAGE
    look_back_hours = 1
    columns = quotas.TOPIC_COLUMNS
    kinds = (Kind.TOPIC.value,)

    def step(self, rows: DataFrame, hours: Collection[int]) -> DataFrame:
        return quotas.quota_usage(rows, hours)


class Evictions(HourlyTable):
    """One row for each eviction event of the broker."""

    table = EVICTIONS
    look_back_hours = 0
    has_long_texts = True
    columns = quotas.EVICTION_COLUMNS

    def step(self, rows: DataFrame, hours: Collection[int]) -> DataFrame:
        return quotas.evictions(rows, hours)
