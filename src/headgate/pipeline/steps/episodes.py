"""The step from judged minutes to backlog episodes."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from headgate.pipeline.kernels.episodes import (
    INPUT_COLUMNS,
    JUDGED_COLUMNS,
    MINUTE_FIGURES,
    SORT_COLUMNS,
    NewestMinutes,
    episodes_table,
)
from headgate.pipeline.steps.hours import HOUR_COLUMNS, hour_of
from headgate.pipeline.steps.joins import left_join
from headgate.pipeline.steps.kernel_runner import per_key
from headgate.pipeline.tables.attribution import ATTRIBUTION_KEY
from headgate.pipeline.tables.episodes import EDGE_MINUTES, EPISODES
from headgate.pipeline.tables.schemas import table_schema
from headgate.record.fields import Kind

_KEY: Final = (*ATTRIBUTION_KEY, "minute")

VERDICT_COLUMNS: Final = tuple(dict.fromkeys(("minute", *HOUR_COLUMNS, *JUDGED_COLUMNS)))
"""Columns of ``attribution`` that :func:`episodes` reads."""

MINUTE_COLUMNS: Final = tuple(dict.fromkeys(("kind", *HOUR_COLUMNS, *_KEY, *MINUTE_FIGURES)))
"""Columns of ``intervals`` that :func:`episodes` reads."""


def episodes(
    judged: DataFrame, minutes: DataFrame, hours: Collection[int], newest: NewestMinutes
) -> DataFrame:
    """Rows of ``episodes`` for some hours, from ``attribution`` and ``intervals`` of these and of
    the hours before and after them. ``newest``: the last minute of the telemetry."""
    # Of the neighbouring hours, only the minutes that may belong to the same episode.
    near = (
        hour_of().isin(sorted(hours))
        | (F.minute("minute") < EDGE_MINUTES)
        | (F.minute("minute") >= 60 - EDGE_MINUTES)
    )
    figures = minutes.where(near & (F.col("kind") == Kind.SUBSCRIPTION.value)).select(
        *_KEY, *MINUTE_FIGURES
    )
    rows = left_join(judged.where(near).select(*JUDGED_COLUMNS), figures, _KEY)
    kernel = partial(episodes_table, hours=frozenset(hours), newest=newest)
    return per_key(
        rows.select(*INPUT_COLUMNS), ATTRIBUTION_KEY, SORT_COLUMNS, kernel, table_schema(EPISODES)
    )
