"""Views that ``show`` prints as if they were tables of the folder. No Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from headgate.pipeline.kernels.episodes import SEGMENT_ORDER, joined_table
from headgate.pipeline.store.scan import EVERYTHING, Filter, TableScan
from headgate.pipeline.tables.arrow_types import arrow_schema
from headgate.pipeline.tables.columns import HOUR_NS
from headgate.pipeline.tables.episodes import EPISODE_COLUMNS, EPISODES
from headgate.pipeline.times import Span


class EpisodesScan:
    """Whole episodes, with what ``show`` uses of a :class:`TableScan`.

    An episode is in a range if any of its time is; of hours further outside, it does not know.
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
        """As :meth:`TableScan.batches`."""
        # A segment is found by its start, and may reach into the range from an hour before.
        since_ns = None if span.since_ns is None else span.since_ns - HOUR_NS
        names = [n for n in EPISODES.column_names() if n not in EPISODES.partition_by]
        segments = self._segments.rows(names, Span(since_ns, span.until_ns))
        whole = joined_table(segments.sort_by([(name, "ascending") for name in SEGMENT_ORDER]))
        condition: Any = ds.scalar(True)
        if span.since_ns is not None:
            end = ds.field("episode_end_ns")
            condition = end.is_null() | (end > span.since_ns)
        for name, values in filters:
            condition = condition & ds.field(name).isin(list(values))
        scanner = ds.dataset(whole).scanner(columns=list(columns), filter=condition)
        yield from scanner.to_batches()
