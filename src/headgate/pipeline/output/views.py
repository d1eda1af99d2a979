"""Scans of views, which ``show`` prints like tables of the folder. No Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from headgate.pipeline.kernels.episodes import SEGMENT_ORDER, joined_table
from headgate.pipeline.kernels.rollup import (
    JUDGED_INPUT,
    JUDGED_SUMS,
    ROLLUP_COLUMNS,
    ROLLUP_KEY,
    SUBSCRIPTION_INPUT,
    SUBSCRIPTION_SUMS,
    TOPIC_INPUT,
    TOPIC_SUMS,
    judged_parts,
    rollup_table,
    subscription_parts,
    topic_parts,
)
from headgate.pipeline.kernels.totals import totals
from headgate.pipeline.store.scan import Filter, TableScan
from headgate.pipeline.tables.arrow_types import arrow_schema
from headgate.pipeline.tables.attribution import ATTRIBUTION
from headgate.pipeline.tables.columns import HOUR_NS
from headgate.pipeline.tables.episodes import EPISODE_COLUMNS, EPISODES
from headgate.pipeline.tables.intervals import INTERVALS
from headgate.pipeline.time_span import EVERYTHING, Span
from headgate.record.fields import Kind


class EpisodesScan:
    """A scan of whole episodes, for ``show``.

    An episode is in a range if any of its time is. The scan reads one hour before the range.
    """

    name = "backlog_episodes"
    time_column = "episode_start_ns"
    schema = arrow_schema(EPISODE_COLUMNS)

    def __init__(self, root: str) -> None:
        """Open the table of segments.

        Raises:
            InputError: it is not there.
        """
        self._segments = TableScan(root, EPISODES.name)

    def batches(
        self, columns: Sequence[str], span: Span = EVERYTHING, *filters: Filter
    ) -> Iterator[pa.RecordBatch]:
        """The rows that pass, in no order."""
        # A segment is found by its start, and may reach into the range from an hour before.
        since_ns = None if span.since_ns is None else span.since_ns - HOUR_NS
        names = [n for n in EPISODES.column_names() if n not in EPISODES.partition_by]
        segments = self._segments.rows(names, Span(since_ns, span.until_ns))
        whole = joined_table(segments.sort_by([(name, "ascending") for name in SEGMENT_ORDER]))
        condition: Any = ds.scalar(True)
        if span.since_ns is not None:
            end = ds.field("episode_end_ns")
            condition = end.is_null() | (end > span.since_ns)
        yield from _filtered(whole, columns, filters, condition)


class NamespacesScan:
    """A scan of the view ``namespace_rollup``, for ``show``."""

    name = "namespace_rollup"
    time_column = "minute"
    schema = arrow_schema(ROLLUP_COLUMNS)

    def __init__(self, root: str) -> None:
        """Open the tables that it is summed from.

        Raises:
            InputError: one is not there.
        """
        self._minutes = TableScan(root, INTERVALS.name)
        self._judged = TableScan(root, ATTRIBUTION.name)

    def batches(
        self, columns: Sequence[str], span: Span = EVERYTHING, *filters: Filter
    ) -> Iterator[pa.RecordBatch]:
        """The rows that pass; they are in memory, one for each namespace and minute."""

        def rows(kind: Kind, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
            return self._minutes.batches(names, span, ("kind", [kind.value]))

        topics = map(topic_parts, rows(Kind.TOPIC, TOPIC_INPUT))
        subscriptions = map(subscription_parts, rows(Kind.SUBSCRIPTION, SUBSCRIPTION_INPUT))
        judged = map(judged_parts, self._judged.batches(JUDGED_INPUT, span))
        whole = rollup_table(
            totals(topics, ROLLUP_KEY, TOPIC_SUMS),
            totals(subscriptions, ROLLUP_KEY, SUBSCRIPTION_SUMS),
            totals(judged, ROLLUP_KEY, JUDGED_SUMS),
        )
        yield from _filtered(whole, columns, filters, ds.scalar(True))


def _filtered(
    table: pa.Table, columns: Sequence[str], filters: Sequence[Filter], condition: Any
) -> Iterator[pa.RecordBatch]:
    for name, values in filters:
        condition = condition & ds.field(name).isin(list(values))
    yield from ds.dataset(table).scanner(columns=list(columns), filter=condition).to_batches()
