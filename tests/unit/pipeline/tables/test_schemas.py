"""A table's columns, all or some of them, as Spark types."""

from __future__ import annotations

import pytest

from headgate.pipeline.tables.intervals import INTERVALS
from headgate.pipeline.tables.schemas import part_schema, table_schema


def test_some_columns_come_in_the_order_of_the_table() -> None:
    names = ("to_ns", "hour", "kind")
    found = part_schema(INTERVALS, names)
    assert found.names == ["hour", "kind", "to_ns"]
    assert set(found.fields) <= set(table_schema(INTERVALS).fields)
    assert part_schema(INTERVALS, None) == table_schema(INTERVALS)


def test_an_unknown_column_is_an_error() -> None:
    with pytest.raises(KeyError, match="intervals has no column x"):
        part_schema(INTERVALS, ("hour", "x"))
