"""The step from judged minutes to backlog episodes."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from headgate.pipeline.kernels.episodes import (
    JUDGED_COLUMNS,
    MINUTE_FIGURES,
    STUCK_STATE,
    NewestMinutes,
    episodes_table,
)
from headgate.pipeline.kernels.minute_figures import MIXED_ORDER, with_figures
from headgate.pipeline.steps.hours import HOUR_COLUMNS, hour_of
from headgate.pipeline.steps.kernel_runner import per_key
from headgate.pipeline.tables.attribution import ATTRIBUTION_KEY
from headgate.pipeline.tables.episodes import EDGE_MINUTES, EPISODES
from headgate.pipeline.tables.schemas import table_schema
from headgate.record.fields import Kind

_KEY: Final = (*ATTRIBUTION_KEY, "minute")

VERDICT_COLUMNS: Final = tuple(dict.fromkeys(("minute", *HOUR_COLUMNS, *JUDGED_COLUMNS)))
"""Columns of ``attribution`` that :func:`episodes` reads."""

_COUNTS: Final = ("skipped", "expired", "evicted", STUCK_STATE)
"""Columns of ``intervals``: where all are zero, no figure of the minute matters."""

MINUTE_COLUMNS: Final = tuple(
    dict.fromkeys(("kind", *HOUR_COLUMNS, *_KEY, *MINUTE_FIGURES, *_COUNTS))
)
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
    # Most minutes have none of them. A join would shuffle all verdicts once more. Or it would bring
    # the figures into the driver, since Spark takes the few bytes of their columns for their size.
    figures = minutes.where(near & (F.col("kind") == Kind.SUBSCRIPTION.value) & _has_figures())
    rows = (
        judged.where(near)
        .select(*JUDGED_COLUMNS)
        .unionByName(figures.select(*_KEY, *MINUTE_FIGURES), allowMissingColumns=True)
    )
    kernel = partial(_episodes_table, hours=frozenset(hours), newest=newest)
    return per_key(rows, ATTRIBUTION_KEY, MIXED_ORDER, kernel, table_schema(EPISODES))


def _has_figures() -> Column:
    return F.expr(" OR ".join(f"coalesce({name}, 0) <> 0" for name in _COUNTS))


def _episodes_table(rows: pa.Table, hours: Collection[int], newest: NewestMinutes) -> pa.Table:
    return episodes_table(with_figures(rows), hours, newest)
