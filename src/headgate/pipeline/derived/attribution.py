"""The table ``attribution``, which follows from ``intervals``."""

from __future__ import annotations

from collections.abc import Collection

from pyspark.sql import DataFrame

from headgate.pipeline.derived.derived_table import HourlyTable
from headgate.pipeline.steps import attribution
from headgate.pipeline.tables.attribution import ATTRIBUTION, DEMONSTRATED_LOOK_BACK_NS
from headgate.pipeline.tables.columns import HOUR_NS
from headgate.record.fields import Kind


class Attribution(HourlyTable):
    """Verdicts by minute; a consumer's demonstrated rate looks back a day."""

    table = ATTRIBUTION
    look_back_hours = DEMONSTRATED_LOOK_BACK_NS // HOUR_NS
    is_in_input_order = True
    columns = attribution.MINUTE_COLUMNS
    kinds = (Kind.SUBSCRIPTION.value,)

    def step(self, rows: DataFrame, hours: Collection[int]) -> DataFrame:
        return attribution.attribution(rows, hours)
