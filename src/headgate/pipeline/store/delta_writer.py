"""The writer of the Spark data source of the tables, ``format("headgate_tables")``.

Each task writes Parquet files with unique names and returns their descriptions. On the driver,
``commit`` makes one Delta commit for each table, idempotent by its application transaction. A
killed task or job leaves only files that no table refers to.

Options:

* ``root``: the folder of all tables.
* ``table``: a table's name. With ``bronze`` the rows are messages of the telemetry topic, with
  ``scrapes`` they name files with a broker's metrics, with ``records`` files of such messages; all
  are decoded into the bronze tables.
* ``touched``: a JSON object of hours and minutes (``TouchedMinutes``), which the rows replace.
* ``partition``: a JSON object of partition columns and values, which the rows replace.
* ``app_id``, ``app_version``: the application transaction (optional).
* ``lock``: for a folder in S3, a JSON object of the tables' leases under which the writer commits.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from headgate.pipeline.kernels.decode import bronze_tables
from headgate.pipeline.record_files.decoding import record_tables
from headgate.pipeline.scrapes.decoding import scrape_tables
from headgate.pipeline.store.delta_log import (
    AppTransaction,
    commit_append,
    commit_replace,
    commit_replace_partition,
)
from headgate.pipeline.store.lock_tokens import LOCK_OPTION, with_lease_tokens
from headgate.pipeline.store.parquet_files import FileAdded, write_tables
from headgate.pipeline.tables.catalogue import SPARK_FORMAT, TABLES
from headgate.pipeline.tables.touched_minutes import TouchedMinutes

FORMAT: Final = SPARK_FORMAT
BRONZE: Final = "bronze"
"""Value of the option ``table`` for messages of the telemetry topic."""
SCRAPES: Final = "scrapes"
"""Value of the option ``table`` for files with a broker's metrics (``scrapes.folder``)."""

RECORDS: Final = "records"
"""Value of the option ``table`` for files of telemetry messages (``record_files.folder``)."""

_DECODERS: Final = {BRONZE: bronze_tables, SCRAPES: scrape_tables, RECORDS: record_tables}


@dataclass(frozen=True)
class FilesWritten(WriterCommitMessage):
    """The files of one task."""

    files: tuple[FileAdded, ...]


class TablesWriter(DataSourceArrowWriter):
    """Writes files in tasks and commits them on the driver. It has no state between batches.

    A batch may be interrupted before, in or after each of :meth:`write`, :meth:`rows`,
    :meth:`commit` and :meth:`commit_table`. Spark then repeats it. Tests do so in a subclass.
    """

    table: str
    """Name of the table to write, or :data:`BRONZE`, :data:`SCRAPES` or :data:`RECORDS`."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._root = options["root"]
        self.table = options["table"]
        self._tokens: dict[str, str] = json.loads(options.get(LOCK_OPTION, "{}"))
        touched = options.get("touched")
        self._touched = None if touched is None else TouchedMinutes.from_json(touched)
        partition = options.get("partition")
        self._partition: dict[str, str] | None = (
            None if partition is None else json.loads(partition)
        )
        app_id = options.get("app_id")
        self._transaction = (
            None if app_id is None else AppTransaction(app_id, int(options["app_version"]))
        )

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write the rows of one task."""
        context = TaskContext.get()
        task = "0" if context is None else str(context.partitionId())
        return FilesWritten(tuple(self._written(task, iterator)))

    def _written(self, task: str, batches: Iterator[pa.RecordBatch]) -> list[FileAdded]:
        # Files of single minutes, so that the next trigger replaces whole files.
        by_minute = frozenset() if self._touched is None else self._touched.minute_files
        return write_tables(self._root, task, self.rows(batches), by_minute)

    def rows(self, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[str, pa.Table]]:
        """Pairs of a table's name and rows that one task writes."""
        decode = _DECODERS.get(self.table)
        if decode is None:
            for batch in batches:
                yield self.table, pa.Table.from_batches([batch])
            return
        for batch in batches:
            yield from decode(batch)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Commit the files of all tasks, once."""
        files = [f for m in messages if isinstance(m, FilesWritten) for f in m.files]
        decoded = self.table in _DECODERS
        names = sorted({f.table for f in files}) if decoded else [self.table]
        for name in names:
            self.commit_table(name, [file for file in files if file.table == name])

    def commit_table(self, name: str, files: list[FileAdded]) -> None:
        """Commit the files of one table; bronze has several tables, each with its own commit."""
        table = TABLES[name]
        with with_lease_tokens(self._root, self._tokens):
            if self._partition is not None:
                commit_replace_partition(self._root, table, files, self._partition)
            elif self._touched is None:
                commit_append(self._root, table, files, self._transaction)
            else:
                commit_replace(self._root, table, files, self._touched, self._transaction)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Undo nothing: files that were not committed belong to no table."""
