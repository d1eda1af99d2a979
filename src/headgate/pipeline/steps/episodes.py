"""The step from judged minutes to backlogs with a beginning and an end. As
:mod:`headgate.pipeline.steps.intervals`: ``DataFrame -> DataFrame``, no session, no input or
output.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from headgate.base.units import NS_PER_S
from headgate.pipeline.kernels.episodes import (
    INPUT_COLUMNS,
    JUDGED_COLUMNS,
    SORT_COLUMNS,
    Newest,
    episodes_table,
)
from headgate.pipeline.steps.publishing import left_join
from headgate.pipeline.tables.arrow_types import whole_subjects
from headgate.pipeline.tables.attribution import ATTRIBUTION_KEY
from headgate.pipeline.tables.columns import HOUR_NS
from headgate.pipeline.tables.episodes import EDGE_MINUTES, EPISODES
from headgate.pipeline.tables.schemas import table_schema
from headgate.record.fields import Kind

_KEY: Final = (*ATTRIBUTION_KEY, "minute")
_KNOWN: Final = ("skipped",)

VERDICT_COLUMNS: Final = tuple(dict.fromkeys(("minute", *JUDGED_COLUMNS)))
"""What :func:`episodes` uses of ``attribution``."""

MINUTE_COLUMNS: Final = tuple(dict.fromkeys(("kind", *_KEY, *_KNOWN)))
"""What it uses of ``intervals``."""


def episodes(
    judged: DataFrame, minutes: DataFrame, hours: Collection[int], newest: Newest
) -> DataFrame:
    """Rows of ``episodes`` for some hours, from ``attribution`` and ``intervals`` of these and of
    the hours before and after them. ``newest``: how far telemetry goes."""
    wanted = frozenset(hours)
    # Of the hours around, only what may be of the same episode.
    edge = EDGE_MINUTES
    hour = F.floor(F.unix_seconds("minute") / (HOUR_NS // NS_PER_S))
    near = (
        hour.isin(sorted(wanted)) | (F.minute("minute") < edge) | (F.minute("minute") >= 60 - edge)
    )
    known = minutes.where(near & (F.col("kind") == Kind.SUBSCRIPTION.value)).select(*_KEY, *_KNOWN)

    def kernel(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table in whole_subjects(batches, ATTRIBUTION_KEY):
            yield from episodes_table(table, wanted, newest).to_batches()

    return (
        left_join(judged.where(near).select(*JUDGED_COLUMNS), known, _KEY)
        .select(*INPUT_COLUMNS)
        .repartition(*ATTRIBUTION_KEY)
        .sortWithinPartitions(*SORT_COLUMNS)
        .mapInArrow(kernel, table_schema(EPISODES))
    )
