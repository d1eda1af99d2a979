"""Scans of tables without Spark, which read only the needed files and columns.

Reading takes no lock: a Delta table's loaded version stays as it is while a job writes the next.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake.exceptions import DeltaError

from headgate.base.errors import InputError
from headgate.base.units import NS_PER_US
from headgate.pipeline.failures import PipelineError
from headgate.pipeline.store.delta_log import check_layout, table_files
from headgate.pipeline.store.storage_failures import storage_reason
from headgate.pipeline.store.table_store import os_error_text, store_of
from headgate.pipeline.tables.arrow_types import TIMESTAMP, plain_schema, table_arrow_schema
from headgate.pipeline.tables.catalogue import TABLES
from headgate.pipeline.tables.columns import HOUR_NS, MINUTE_NS, TIME_COLUMNS
from headgate.pipeline.time_span import EVERYTHING, Span

BATCH_ROWS: Final = 131_072
"""Rows in memory at once while a table is read."""

Filter = tuple[str, Collection[Any]]
"""A column and the values that pass."""


def existing_tables(root: str) -> tuple[str, ...]:
    """Names of the tables in a folder.

    Raises:
        InputError: there is no such folder, or it has no tables.
    """
    first = f"headgate pipeline run --out {root}"
    try:
        names = tuple(store_of(root).tables())
    except FileNotFoundError as error:
        raise InputError(
            f"there is no folder {root} yet (--out): {first} makes and fills it"
        ) from error
    except OSError as error:
        raise InputError(f"folder {root} cannot be read: {os_error_text(error)}") from error
    if not names:
        raise InputError(
            f"folder {root} holds no tables of this pipeline yet (--out): {first} fills it"
        )
    return names


class TableScan:
    """One table at the version that was newest when it was opened."""

    def __init__(self, root: str, name: str) -> None:
        """Load the table's log.

        Raises:
            InputError: the table is absent, or has another layout version.
            PipelineError: its log is damaged.
        """
        self._store = store_of(root)
        if not self._store.is_table(name):
            raise InputError(f"folder {root} has no table {name}")
        try:
            delta = self._store.delta(name)
        except DeltaError as error:
            raise PipelineError(
                f"table {name} in {root} cannot be read: {storage_reason(error)}"
            ) from error
        check_layout(delta, self._store.uri(name))
        self.name = name
        self.files = table_files(delta)
        self._actions = pa.table(delta.get_add_actions(flatten=True))
        self.schema: pa.Schema = plain_schema(pa.schema(delta.schema().to_arrow()))
        declared = TABLES.get(name)
        self._types = {} if declared is None else _types(table_arrow_schema(declared))
        self._types |= _types(self.schema)
        self._partition_by = tuple(delta.metadata().partition_columns)
        self.time_column = next((c for c in TIME_COLUMNS if c in self.schema.names), None)

    @property
    def row_count(self) -> int:
        """Number of rows in all files, from the log."""
        return sum(file.rows for file in self.files)

    def span(self) -> Span | None:
        """Time range of the rows, from the log; None without rows.

        The end is exclusive. For rows of minutes or hours it is the end of the last one.
        """
        first, last = (self._bound(f"{end}.{self.time_column}", end) for end in ("min", "max"))
        if first is None or last is None:
            return None
        return Span(first, last + TIME_COLUMNS.get(self.time_column or "", 1))

    def _bound(self, statistic: str, end: str) -> int | None:
        if statistic not in self._actions.column_names:
            return None
        column = self._actions[statistic]
        value = (pc.min if end == "min" else pc.max)(column)
        if pa.types.is_timestamp(column.type):
            value = value.cast(TIMESTAMP, safe=False).cast(pa.int64())
            return None if value.as_py() is None else int(value.as_py()) * NS_PER_US
        found = value.as_py()
        return found if isinstance(found, int) else None

    def batches(
        self, columns: Sequence[str], span: Span = EVERYTHING, *filters: Filter
    ) -> Iterator[pa.RecordBatch]:
        """Rows of a time range that pass all filters, in any order.

        Columns that the table lacks, as in a folder of an earlier version, are null.
        """
        yield from self._batches_of(self._files_within(span), columns, span, filters)

    def _batches_of(
        self, wanted: list[str], columns: Sequence[str], span: Span, filters: Sequence[Filter]
    ) -> Iterator[pa.RecordBatch]:
        have = [name for name in columns if name in self.schema.names]
        if not wanted or any(name not in self.schema.names for name, _ in filters):
            return
        dataset = self._store.dataset(self.name, wanted, self.schema, self._partition_by)
        scanner = dataset.scanner(
            columns=have,
            filter=self._condition(span, filters),
            batch_size=BATCH_ROWS,
            # Rows that are read ahead take memory.
            batch_readahead=2,
            fragment_readahead=1,
        )
        for batch in scanner.to_batches():
            if batch.num_rows:
                yield self._with_nulls(batch, columns)

    def newest_first(
        self, columns: Sequence[str], span: Span = EVERYTHING, *filters: Filter
    ) -> Iterator[tuple[Any, Iterator[pa.RecordBatch]]]:
        """The rows of :meth:`batches` file by file, with the latest time in that file and in all
        that follow; None if the log does not tell it. Such files come first. A file is read when
        its rows are taken."""
        latest = self._latest_times()
        unknown = [file for file in self._files_within(span) if latest.get(file) is None]
        known = [file for file in self._files_within(span) if latest.get(file) is not None]
        for path in (*unknown, *sorted(known, key=lambda file: latest[file], reverse=True)):
            yield latest.get(path), self._batches_of([path], columns, span, filters)

    def _latest_times(self) -> dict[str, Any]:
        """A time that no row of a file exceeds, by its path, where the log has it."""
        statistic = f"max.{self.time_column}"
        if self.time_column is None or statistic not in self._actions.column_names:
            return {}
        paths, times = self._actions["path"].to_pylist(), self._actions[statistic].to_pylist()
        # The log may round a time down to its millisecond.
        more = timedelta(milliseconds=1)
        latest = (time + more if isinstance(time, datetime) else time for time in times)
        return dict(zip(paths, latest, strict=True))

    def rows(self, columns: Sequence[str], span: Span = EVERYTHING, *filters: Filter) -> pa.Table:
        """The rows of :meth:`batches` in one table."""
        schema = pa.schema([(name, self._types.get(name, pa.null())) for name in columns])
        return pa.Table.from_batches(list(self.batches(columns, span, *filters)), schema)

    def _with_nulls(self, batch: pa.RecordBatch, columns: Sequence[str]) -> pa.RecordBatch:
        have = set(batch.schema.names)
        if len(have) == len(columns):
            return batch
        return pa.record_batch(
            [
                batch.column(name)
                if name in have
                else pa.nulls(batch.num_rows, self._types.get(name, pa.null()))
                for name in columns
            ],
            names=list(columns),
        )

    def _files_within(self, span: Span) -> list[str]:
        if "hour" not in self._partition_by:
            return [file.path for file in self.files]
        # A minute that touches the range may begin in the hour before it.
        first = 0 if span.since_ns is None else (span.since_ns - MINUTE_NS) // HOUR_NS
        last = None if span.until_ns is None else (span.until_ns + MINUTE_NS) // HOUR_NS
        return [
            file.path
            for file in self.files
            if file.hour >= first and (last is None or file.hour <= last)
        ]

    def _condition(self, span: Span, filters: Sequence[Filter]) -> Any:
        conditions = [ds.field(name).isin(list(values)) for name, values in filters]
        if self.time_column is not None:
            column, kind = ds.field(self.time_column), self.schema.field(self.time_column).type
            # Whole minutes and hours: one that only touches the range is in it.
            slack_ns = TIME_COLUMNS[self.time_column] - 1
            if span.since_ns is not None:
                conditions.append(column >= _instant(span.since_ns - slack_ns, kind))
            if span.until_ns is not None:
                conditions.append(column < _instant(span.until_ns, kind))
        combined = None
        for condition in conditions:
            combined = condition if combined is None else combined & condition
        return combined


def _instant(time_ns: int, kind: pa.DataType) -> pa.Scalar:
    if pa.types.is_timestamp(kind):
        # Rounded up: a row at the microsecond before is outside.
        return pa.scalar(-(-time_ns // NS_PER_US), pa.int64()).cast(kind)
    return pa.scalar(time_ns, kind)


def _types(schema: pa.Schema) -> dict[str, pa.DataType]:
    return {field.name: field.type for field in schema}
