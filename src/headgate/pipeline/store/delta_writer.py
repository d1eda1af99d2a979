"""The data source writer of the pipeline's tables: ``df.write.format("headgate_tables")``.

Tasks write uniquely named Parquet files with pyarrow and hand back their description; ``commit``,
on the driver, makes one delta-rs commit for each table, idempotent by its application
transaction. A task or a job that is killed leaves files that no table mentions.

Options: ``root`` (the folder of all tables), ``table`` (a table's name; ``bronze``: the rows are
messages of the telemetry topic, ``scrapes``: they name files with a broker's metrics, and are
decoded here into the bronze tables), ``hours`` (JSON list of hours since the epoch: replace exactly
these), ``partition`` (JSON object of partition columns and values: replace exactly that one),
``app_id`` and ``app_version`` (the application transaction; optional), ``lock`` (of a folder in S3:
the hold on it that a commit goes by).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from headgate.base.errors import InputError
from headgate.pipeline.kernels.decode import bronze_tables
from headgate.pipeline.scrapes.decoding import scrape_tables
from headgate.pipeline.store.delta_log import (
    AppTransaction,
    commit_append,
    commit_replace,
    commit_replace_partition,
)
from headgate.pipeline.store.lock_tokens import LOCK_OPTION, with_lock_token
from headgate.pipeline.store.parquet_files import FileAdded, write_tables
from headgate.pipeline.tables.catalogue import TABLES

FORMAT: Final = "headgate_tables"
BRONZE: Final = "bronze"
"""Value of the option ``table`` for messages of the telemetry topic."""
SCRAPES: Final = "scrapes"
"""Value of the option ``table`` for files with a broker's metrics (``scrapes.folder``)."""

_DECODED: Final = frozenset({BRONZE, SCRAPES})


@dataclass(frozen=True)
class FilesWritten(WriterCommitMessage):
    """What one task wrote."""

    files: tuple[FileAdded, ...]


class HeadgateTables(DataSource):
    """Write rows into the tables of a pipeline folder."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return FORMAT

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:  # noqa: ARG002
        """The writer; ``mode("append")`` only: what is replaced says the option ``hours``."""
        if overwrite:
            raise InputError(
                f'format("{FORMAT}") takes mode("append"); the option hours says what is replaced'
            )
        return TablesWriter(dict(self.options))


class TablesWriter(DataSourceArrowWriter):
    """Writes in tasks, commits on the driver. Keeps nothing between batches.

    A batch may be cut off before, in or after each of :meth:`write`, :meth:`rows`, :meth:`commit`
    and :meth:`commit_table`, and is then done again; tests do that in a subclass.
    """

    table: str
    """Name of the table that is written, or :data:`BRONZE`."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._root = options["root"]
        self.table = options["table"]
        self._hold = options.get(LOCK_OPTION)
        hours = options.get("hours")
        self._hours: list[int] | None = None if hours is None else json.loads(hours)
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
        return FilesWritten(tuple(write_tables(self._root, task, self.rows(iterator))))

    def rows(self, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[str, pa.Table]]:
        """What one task writes: names of tables and rows, piece by piece."""
        if self.table not in _DECODED:
            for batch in batches:
                yield self.table, pa.Table.from_batches([batch])
            return
        for batch in batches:
            yield from scrape_tables(batch) if self.table == SCRAPES else bronze_tables(batch)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Make what the tasks wrote visible, once."""
        files = [f for m in messages if isinstance(m, FilesWritten) for f in m.files]
        decoded = self.table in _DECODED
        names = sorted({f.table for f in files}) if decoded else [self.table]
        for name in names:
            self.commit_table(name, [file for file in files if file.table == name])

    def commit_table(self, name: str, files: list[FileAdded]) -> None:
        """Make the files of one table visible; bronze has several, each with its own commit."""
        table = TABLES[name]
        with with_lock_token(self._root, self._hold):
            if self._partition is not None:
                commit_replace_partition(self._root, table, files, self._partition)
            elif self._hours is None:
                commit_append(self._root, table, files, self._transaction)
            else:
                commit_replace(self._root, table, files, self._hours, self._transaction)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Undo nothing: files that were not committed belong to no table."""
