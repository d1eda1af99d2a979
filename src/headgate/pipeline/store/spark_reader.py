"""Files of a table as a DataFrame.

Spark itself reads files on a mounted file system. For an object store it would need hadoop-aws, a
jar that matches its Hadoop version. So Python tasks read such files with pyarrow. Spark cannot push
filters down to them: the caller names the columns, and the tasks read all rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from headgate.pipeline.location import is_object_store, local_url
from headgate.pipeline.one_task import in_one_task
from headgate.pipeline.store.delta_log import TableFile
from headgate.pipeline.store.table_store import store_of
from headgate.pipeline.tables.arrow_types import table_arrow_schema
from headgate.pipeline.tables.columns import Table
from headgate.pipeline.tables.schemas import part_schema, table_schema

BATCH_ROWS: Final = 20_000
"""Rows that a task sends to Java at once."""

_PACKS_PER_CORE: Final = 2
"""Packs for each core; more of them balance the tasks."""

_OPENING_BYTES: Final = 1 << 18
"""Cost of opening a file, as bytes that could be read in that time."""

_ARE_PATTERNS: Final = "__globPaths__"
"""Spark's option for glob patterns in paths, which is off: a folder's name may have ``[`` or
``*``."""


def read_files(
    spark: SparkSession,
    root: str,
    table: Table,
    files: Iterable[TableFile],
    columns: Collection[str] | None = None,
) -> DataFrame:
    """Live files of a table as a DataFrame of its schema; empty without files.

    ``columns``: those that the caller uses; None stands for all.
    """
    return in_one_task(_rows_of_files(spark, root, table, list(files), columns))


def _rows_of_files(
    spark: SparkSession,
    root: str,
    table: Table,
    files: list[TableFile],
    columns: Collection[str] | None,
) -> DataFrame:
    schema = part_schema(table, columns)
    if not (paths := [file.path for file in files]):
        return spark.createDataFrame([], schema)
    if is_object_store(root):
        return object_rows(spark, root, table, files, columns)
    folder = local_url(store_of(root).path(table.name))
    # Without basePath the partition columns would be null.
    return (
        spark.read.schema(table_schema(table))
        .option("basePath", folder)
        .option(_ARE_PATTERNS, "false")
        .parquet(*[f"{folder}/{path}" for path in paths])
        .to(schema)
    )


def object_rows(
    spark: SparkSession,
    root: str,
    table: Table,
    files: Sequence[TableFile],
    columns: Collection[str] | None = None,
) -> DataFrame:
    """Files of a table in an object store as a DataFrame, with all or some of its columns."""
    packs = pack_files(files, _PACKS_PER_CORE * spark.sparkContext.defaultParallelism)

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from file_batches(root, table, packs[number], columns)

    # One number, and so one pack, for each partition. A shuffle would merge some.
    numbers = spark.range(0, len(packs), numPartitions=len(packs))
    return numbers.mapInArrow(read, part_schema(table, columns))


def pack_files(files: Sequence[TableFile], packs_max: int) -> list[list[str]]:
    """Paths of files in at most ``packs_max`` packs of about equal read time, none empty."""
    packs: list[list[str]] = [[] for _ in range(min(packs_max, len(files)))]
    sizes = [0] * len(packs)
    for file in sorted(files, key=lambda file: (-file.size_bytes, file.path)):
        emptiest = sizes.index(min(sizes))
        packs[emptiest].append(file.path)
        sizes[emptiest] += read_cost_bytes(file)
    return packs


def read_cost_bytes(file: TableFile) -> int:
    """The size of a file, and what it costs to open it."""
    return file.size_bytes + _OPENING_BYTES


def file_batches(
    root: str,
    table: Table,
    paths: Sequence[str],
    columns: Collection[str] | None = None,
    condition: Any = None,
) -> Iterator[pa.RecordBatch]:
    """Rows of files of a table, with all or some of its columns in the table's order.

    ``condition``: a filter of pyarrow that rows must pass; None: all pass. Row groups whose
    statistics exclude it are not read. A column that is newer than a file is null. Partition
    columns come from the path.
    """
    schema = table_arrow_schema(table)
    dataset = store_of(root).dataset(table.name, paths, schema, table.partition_by)
    wanted = [name for name in schema.names if columns is None or name in columns]
    # Rows that are read ahead take memory.
    for batch in dataset.to_batches(
        columns=wanted,
        filter=condition,
        batch_size=BATCH_ROWS,
        batch_readahead=4,
        fragment_readahead=2,
    ):
        if batch.num_rows:
            yield batch
