"""Steps to the tables about backlog quotas."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from headgate.pipeline.kernels.evictions import INPUT_COLUMNS as EVENT_COLUMNS
from headgate.pipeline.kernels.evictions import evictions_table
from headgate.pipeline.kernels.quota_usage import INPUT_COLUMNS as TOPIC_MINUTE_COLUMNS
from headgate.pipeline.kernels.quota_usage import quota_usage_table
from headgate.pipeline.steps.kernel_runner import per_key
from headgate.pipeline.tables.bronze import EVENT_IDENTITY
from headgate.pipeline.tables.intervals import TOPIC_KEY, TOPIC_ORDER
from headgate.pipeline.tables.quotas import EVICTION_EVENT, EVICTIONS, QUOTA_USAGE
from headgate.pipeline.tables.schemas import table_schema
from headgate.record.fields import Kind

TOPIC_COLUMNS: Final = ("kind", *TOPIC_MINUTE_COLUMNS)
"""Columns of ``intervals`` that :func:`quota_usage` reads."""

EVICTION_COLUMNS: Final = tuple(dict.fromkeys(("event", *EVENT_COLUMNS)))
"""Columns of ``bronze_events`` that :func:`evictions` reads."""


def quota_usage(minutes: DataFrame, hours: Collection[int]) -> DataFrame:
    """Rows of ``quota_usage`` for some hours, from ``intervals`` of these and the hour before."""
    topics = minutes.where(F.col("kind") == Kind.TOPIC.value).select(*TOPIC_MINUTE_COLUMNS)
    kernel = partial(quota_usage_table, hours=frozenset(hours))
    return per_key(topics, TOPIC_KEY, TOPIC_ORDER, kernel, table_schema(QUOTA_USAGE))


def evictions(events: DataFrame, hours: Collection[int]) -> DataFrame:
    """Rows of ``evictions`` for some hours, from ``bronze_events`` of these."""
    evicting = events.where(F.col("event") == EVICTION_EVENT).select(*EVENT_COLUMNS)
    kernel = partial(evictions_table, hours=frozenset(hours))
    return per_key(evicting, EVENT_IDENTITY, EVENT_IDENTITY, kernel, table_schema(EVICTIONS))
