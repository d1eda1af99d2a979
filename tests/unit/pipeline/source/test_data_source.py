"""The class that Spark loads: schemas, and reads that are refused."""

from __future__ import annotations

import pytest
from pyspark.sql.types import StructType

from headgate.base.errors import InputError
from headgate.pipeline.source.batch import FilteringReader, TableReader
from headgate.pipeline.source.data_source import HeadgateTables
from headgate.pipeline.tables.intervals import INTERVALS

GIVEN = {"path": "/tables", "table": "intervals"}


def test_the_schema_has_the_columns_that_are_named() -> None:
    assert HeadgateTables(GIVEN).schema().names == list(INTERVALS.column_names())
    assert HeadgateTables(GIVEN | {"columns": "topic,kind"}).schema().names == ["kind", "topic"]
    schema = HeadgateTables(GIVEN | {"columns": "topic", "readChangeFeed": "true"}).schema()
    assert schema.names == ["topic", "change"]


def test_batches_and_streams_are_told_apart() -> None:
    empty = StructType()
    assert type(HeadgateTables(GIVEN).reader(empty)) is TableReader
    filtering = HeadgateTables(GIVEN | {"pushFilters": "true"}).reader(empty)
    assert type(filtering) is FilteringReader
    with pytest.raises(InputError, match=r"readChangeFeed=true is for spark\.readStream"):
        HeadgateTables(GIVEN | {"readChangeFeed": "true"}).reader(empty)
    with pytest.raises(InputError, match="a stream needs the option readChangeFeed=true"):
        HeadgateTables(GIVEN).streamReader(empty)
