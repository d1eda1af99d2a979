"""Spark schemas of the tables."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from typing import Final

from pyspark.sql import types as spark

from headgate.pipeline.tables.columns import ColumnType, Table, TableColumn

_SPARK: Final[dict[ColumnType, spark.DataType]] = {
    ColumnType.STRING: spark.StringType(),
    ColumnType.LONG: spark.LongType(),
    ColumnType.INT: spark.IntegerType(),
    ColumnType.DOUBLE: spark.DoubleType(),
    ColumnType.BOOLEAN: spark.BooleanType(),
    ColumnType.TIMESTAMP: spark.TimestampType(),
    ColumnType.DATE: spark.DateType(),
    ColumnType.BINARY: spark.BinaryType(),
    ColumnType.DOUBLES: spark.ArrayType(spark.DoubleType()),
}


def spark_schema(columns: tuple[TableColumn, ...]) -> spark.StructType:
    """The StructType of some columns, with their comments."""
    return spark.StructType(
        [
            spark.StructField(c.name, _SPARK[c.type], True, {"comment": c.documentation})
            for c in columns
        ]
    )


@cache
def table_schema(table: Table) -> spark.StructType:
    """The StructType of a whole table."""
    return spark_schema(table.columns)


def part_schema(table: Table, columns: Collection[str] | None) -> spark.StructType:
    """The StructType of some columns of a table, in its order; None stands for all.

    Raises:
        KeyError: the table does not have one of them.
    """
    if columns is None:
        return table_schema(table)
    if unknown := set(columns) - set(table.column_names()):
        raise KeyError(f"{table.name} has no column {', '.join(sorted(unknown))}")
    return spark_schema(tuple(column for column in table.columns if column.name in columns))


MESSAGE_SCHEMA: Final = spark.StructType(
    [
        spark.StructField("value", spark.BinaryType()),
        spark.StructField("__topic", spark.StringType()),
        spark.StructField("__messageId", spark.BinaryType()),
        spark.StructField("__publishTime", spark.TimestampType()),
    ]
)
"""The columns of ``format("pulsar")`` that ingestion reads."""
