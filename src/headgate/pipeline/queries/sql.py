"""``headgate pipeline sql``: queries over the tables and views of a folder, run by Spark."""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, Final, TextIO

from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from headgate.base.clock import SystemClock
from headgate.pipeline.failures import PipelineError
from headgate.pipeline.job_session import query_session
from headgate.pipeline.location import is_object_store, resolved_root
from headgate.pipeline.options import SqlOptions
from headgate.pipeline.output.rows import write_rows
from headgate.pipeline.progress import Progress
from headgate.pipeline.queries.sql_errors import query_error
from headgate.pipeline.source.filters import is_within, range_conditions
from headgate.pipeline.spark_failures import reason_of
from headgate.pipeline.sql.columns import typed_columns
from headgate.pipeline.sql.dialect import SPARK
from headgate.pipeline.sql.script import folder_columns, view_names
from headgate.pipeline.sql.statement import checked_statement, named_in
from headgate.pipeline.sql.view_texts import SQL_VIEWS
from headgate.pipeline.store.delta_log import open_table, table_files
from headgate.pipeline.store.spark_reader import read_files
from headgate.pipeline.tables.catalogue import SPARK_FORMAT, TABLES
from headgate.pipeline.time_span import EVERYTHING, Span, iso_text, parse_span

_ERROR_LOGGER: Final = "SQLQueryContextLogger"
ROWS_SHOWN: Final = 50
"""Rows on a terminal without ``--count``; JSON and CSV have all."""


class FolderQueries:
    """The tables and views of a folder, as temporary views of a session.

    A view is made when a query names it first, and the tables are those of that moment: a year of
    tables has thousands of files, which a query about one of them need not wait for.
    """

    def __init__(
        self, spark: SparkSession, root: str, tables: Collection[str], span: Span = EVERYTHING
    ) -> None:
        """``tables``: names of the tables that the folder has. ``span``: the time range that
        queries see."""
        self._spark = spark
        self._root = resolved_root(root)
        self._span = span
        self._tables = tables
        self._views = view_names(tables)

    @property
    def names(self) -> list[str]:
        """Names of the tables and views that queries may use."""
        return [*self._tables, *self._views]

    def columns(self, name: str) -> list[str]:
        """The columns of a table or view."""
        if name in SQL_VIEWS:
            return list(SQL_VIEWS[name].columns)
        return [column for column, _ in typed_columns(TABLES[name], SPARK)]

    def cancel(self) -> None:
        """End the work of a query that was interrupted."""
        self._spark.sparkContext.cancelAllJobs()

    def rows(self, text: str) -> DataFrame:
        """The rows of a query, which are computed when they are taken.

        Raises:
            InputError: the query does more than read, or names what does not exist.
            PipelineError: it failed for another reason.
        """
        statement = checked_statement(text)
        named = named_in(statement, self.names)
        self._make(named)
        with self._worded(named):
            return _distinct_names(self._spark.sql(statement))

    def write(self, text: str, options: SqlOptions, out: TextIO, err: TextIO) -> int:
        """Write the rows of a query to ``out``; returns how many. ``err`` has what is left out.

        Raises:
            InputError, PipelineError: as :meth:`rows`.
        """
        found = self.rows(text)
        with self._worded(named_in(text, self.names)):
            folder, limit = options.folder, options.count
            if limit is None and folder.format == "table":
                limit = ROWS_SHOWN
            rows: Iterator[dict[str, Any]]
            if limit is None:
                rows = map(_plain_row, found.toLocalIterator())
            else:
                rows = map(_plain_row, found.limit(limit + 1).collect())
            taken = rows if limit is None else islice(rows, limit)
            count = write_rows(
                folder.format, found.columns, taken, out, width=folder.width, color=folder.color
            )
            if limit is not None and next(rows, None) is not None:
                err.write(f"The first {count:,} rows; --count shows more.\n")
            elif not count and folder.format == "table":
                err.write("No rows.\n")
        return count

    @contextmanager
    def _worded(self, named: Sequence[str]) -> Iterator[None]:
        """Turn what Spark says of a query into one sentence."""
        try:
            yield
        except PySparkException as error:
            found = query_error(error, self.names, {name: self.columns(name) for name in named})
            raise found or PipelineError(reason_of(str(error))) from error

    def _make(self, names: Sequence[str]) -> None:
        """Make the views of these names that do not exist yet, with those that they follow from."""
        wanted = dict.fromkeys(names)
        for name in names:
            if name in SQL_VIEWS:
                wanted = dict.fromkeys((*SQL_VIEWS[name].follows_from, *wanted))
        for name in wanted:
            if name in self._tables:
                self._table(name).createOrReplaceTempView(name)
            else:
                self._spark.sql(SQL_VIEWS[name].sql(SPARK)).createOrReplaceTempView(name)

    def _table(self, name: str) -> DataFrame:
        table = TABLES[name]
        if is_object_store(self._root):
            given = {"path": self._root, "table": name, **_range_options(self._span)}
            rows = self._spark.read.format(SPARK_FORMAT).options(**given).load()
        else:
            # Spark itself reads local files faster than Python does, and only the columns it needs.
            files = table_files(open_table(self._root, table))
            wanted = [file for file in files if is_within(file, self._span)]
            rows = read_files(self._spark, self._root, table, wanted)
            for condition in range_conditions(table, self._span, ()):
                compare = operator.ge if condition.operator == ">=" else operator.lt
                rows = rows.where(compare(F.col(condition.column), F.lit(condition.value)))
        return rows.selectExpr(
            *(f"{text} AS {SPARK.name_of(made)}" for made, text in typed_columns(table, SPARK))
        )


def _range_options(span: Span) -> dict[str, str]:
    """The options of a range for the data source."""
    ends = {"since": span.since_ns, "until": span.until_ns}
    return {name: iso_text(end_ns) for name, end_ns in ends.items() if end_ns is not None}


def _distinct_names(rows: DataFrame) -> DataFrame:
    """Rows whose columns have different names: a second ``topic`` becomes ``topic_2``."""
    names: list[str] = []
    for name in rows.columns:
        number, found = 2, name
        while found in names:
            found, number = f"{name}_{number}", number + 1
        names.append(found)
    return rows if names == rows.columns else rows.toDF(*names)


def _plain_row(row: Row) -> dict[str, Any]:
    return dict(row.asDict(recursive=True))


def run_sql(query: str, options: SqlOptions, out: TextIO, err: TextIO) -> int:
    """Run one query and write its rows to ``out``; returns how many.

    Raises:
        InputError: the folder has no tables, or the query cannot be run as it is.
        PipelineError: Spark did not start, or the query failed.
    """
    checked_statement(query)
    with open_queries(options, err) as queries:
        return queries.write(query, options, out, err)


@contextmanager
def open_queries(options: SqlOptions, err: TextIO) -> Iterator[FolderQueries]:
    """The queries of a folder, with Spark started.

    Raises:
        InputError: the folder has no tables.
        PipelineError: Spark did not start, or a query failed.
    """
    folder = options.folder
    span = parse_span(folder.since, folder.until, SystemClock.wall_ns())
    tables = folder_columns(folder.out)
    progress = Progress(err)
    # PySpark prints a faulty query's error with its plan and trace, before the one sentence.
    PySparkLogger.getLogger(_ERROR_LOGGER).disabled = True
    with query_session(folder.out, "headgate sql", progress, folder.spark) as spark:
        yield FolderQueries(spark, folder.out, tables, span)
