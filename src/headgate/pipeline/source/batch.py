"""Batch reads of a version of a table: planned on the driver, read in tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from headgate.base.errors import InputError
from headgate.base.units import MIB
from headgate.pipeline.source.filters import combined, is_within, range_conditions, take_filters
from headgate.pipeline.source.options import ReadOptions
from headgate.pipeline.source.plain_errors import without_traceback
from headgate.pipeline.source.snapshot import gone_files_text, open_snapshot
from headgate.pipeline.store.delta_log import TableFile
from headgate.pipeline.store.spark_reader import file_batches, pack_files, read_cost_bytes

TASK_BYTES = 16 * MIB
"""Parquet files for one task: some hundred MiB of rows."""


class Files(InputPartition):
    """The files of one task: ``value`` has their paths."""


class TableReader(DataSourceReader):
    """Reads the rows of one version that the options select."""

    def __init__(self, options: ReadOptions) -> None:
        """``options``: those of a batch read."""
        self._options = options
        self._conditions = range_conditions(options.table, options.span, options.kinds)
        self._version = -1

    @without_traceback()
    def partitions(self) -> list[InputPartition]:
        """The tasks, with the files that may have rows that pass."""
        options = self._options
        snapshot = open_snapshot(
            options.root, options.table, version=options.version, at_ns=options.at_ns
        )
        self._version = snapshot.version
        wanted = [
            found.file
            for found in snapshot.files_with_bounds()
            if is_within(found.file, options.span)
            and all(condition.may_pass(found.bounds) for condition in self._conditions)
        ]
        return [Files(paths) for paths in pack_files(wanted, _tasks(wanted, options))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task."""
        options = self._options
        # For an empty list of partitions Spark makes one task without files.
        if partition.value is None:
            return
        condition = combined(self._conditions, options.table)
        with without_traceback():
            try:
                yield from file_batches(
                    options.root, options.table, partition.value, options.columns, condition
                )
            except FileNotFoundError as error:
                raise InputError(gone_files_text(options.table, self._version)) from error


class FilteringReader(TableReader):
    """Reads only what the query's filters select, too, for a DataFrame that is filtered once.

    Spark asks a reader with this method only if ``spark.sql.python.filterPushdown.enabled`` is set.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
        """Take the filters that select files, row groups and rows. Spark applies all again."""
        conditions, _ = take_filters(self._options.table, filters)
        self._conditions += conditions
        return filters


def _tasks(files: list[TableFile], options: ReadOptions) -> int:
    cost_bytes = sum(map(read_cost_bytes, files))
    return max(options.partitions_min, -(-cost_bytes // TASK_BYTES))
