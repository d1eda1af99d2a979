"""The class that Spark loads for ``format("headgate_tables")``.

Its methods import what they need: a task that only writes does not load what reads need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamReader,
)
from pyspark.sql.types import StringType, StructField, StructType

from headgate.base.clock import SystemClock
from headgate.base.errors import InputError
from headgate.pipeline.source.options import CHANGE, ReadOptions, parse_options, reads_changes
from headgate.pipeline.source.plain_errors import without_traceback
from headgate.pipeline.spark_sources import register_source
from headgate.pipeline.store.delta_writer import FORMAT, TablesWriter
from headgate.pipeline.tables.schemas import part_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PUSHDOWN: Final = "spark.sql.python.filterPushdown.enabled"
"""Spark's setting that lets Python sources see filters; it is off by default."""


def register(session: SparkSession) -> None:
    """Let a session read the tables: ``session.read.format("headgate_tables")``.

    A second call changes nothing, also in a session that ``newSession`` made.
    """
    register_source(session, HeadgateTables)
    session.conf.set(PUSHDOWN, "true")


class HeadgateTables(DataSource):
    """Read tables of a pipeline folder; the pipeline itself also writes them with it."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return FORMAT

    @without_traceback()
    def schema(self) -> StructType:
        """The columns of a read."""
        options = self._read_options()
        columns = part_schema(options.table, options.columns)
        if not reads_changes(self.options):
            return columns
        comment = {"comment": "new, corrected or removed."}
        return StructType([*columns.fields, StructField(CHANGE, StringType(), True, comment)])

    @without_traceback()
    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002
        """The reader of a batch."""
        from headgate.pipeline.source.batch import FilteringReader, TableReader

        if reads_changes(self.options):
            raise InputError(
                "option readChangeFeed=true is for spark.readStream; leave it out for a batch read"
            )
        options = self._read_options()
        return FilteringReader(options) if options.pushes_filters else TableReader(options)

    @without_traceback()
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802
        """The reader of a stream."""
        from headgate.pipeline.source.stream import ChangeReader

        if not reads_changes(self.options):
            raise InputError(
                f"a stream needs the option readChangeFeed=true, which adds the column {CHANGE}"
            )
        return ChangeReader(self._read_options())

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:  # noqa: ARG002
        """The writer of the pipeline; it takes only ``mode("append")``, and the option ``hours``
        names what to replace."""
        if overwrite:
            raise InputError(
                f'format("{FORMAT}") takes mode("append"); the option hours names what to replace'
            )
        return TablesWriter(dict(self.options))

    def _read_options(self) -> ReadOptions:
        return parse_options(self.options, SystemClock.wall_ns())
