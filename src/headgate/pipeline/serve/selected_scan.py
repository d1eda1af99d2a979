"""A scan that gives only the rows whose names a request asks for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from headgate.pipeline.serve.selection import Selection
from headgate.pipeline.store.scan import Filter, TableScan
from headgate.pipeline.time_span import EVERYTHING, Span


class SelectedScan(TableScan):
    """A scan for queries that know nothing of names, such as those of the report.

    ``topic`` must be among the columns that they read.
    """

    def __init__(self, root: str, name: str, selection: Selection) -> None:
        """Load the table's log.

        Raises:
            InputError: the table is absent, or has another layout version.
        """
        super().__init__(root, name)
        self._selection = selection

    def batches(
        self, columns: Sequence[str], span: Span = EVERYTHING, *filters: Filter
    ) -> Iterator[pa.RecordBatch]:
        """The rows of the table's scan that pass."""
        for rows in self._selection.named(super().batches(columns, span, *filters)):
            yield from rows.to_batches()
