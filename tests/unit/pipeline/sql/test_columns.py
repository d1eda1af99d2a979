"""Columns for reports: a companion for each nanosecond column, none by the name of another."""

from __future__ import annotations

import pytest

from headgate.pipeline.sql.columns import (
    INSTANTS,
    JSON_ARRAYS,
    JSON_OBJECTS,
    companion_name,
    select_text,
    typed_columns,
    with_companions,
)
from headgate.pipeline.sql.dialect import DUCKDB, SPARK
from headgate.pipeline.tables.catalogue import TABLES
from headgate.pipeline.tables.columns import EPOCH_NS, NS, Table
from headgate.pipeline.tables.quotas import EVICTIONS


@pytest.mark.parametrize("table", TABLES.values(), ids=lambda table: table.name)
def test_every_column_once_and_each_nanosecond_column_with_a_companion(table: Table) -> None:
    names = [name for name, _ in typed_columns(table, SPARK)]
    assert len(set(names)) == len(names)
    assert [name for name in names if name in table.column_names()] == list(table.column_names())
    for name in table.column_names():
        if name.endswith("_ns"):
            assert companion_name(name) in names


def test_what_counts_since_the_epoch_is_an_instant() -> None:
    for table in TABLES.values():
        for column in table.columns:
            if column.name.endswith("_ns"):
                assert column.unit in (NS, EPOCH_NS), column.name
                assert (column.unit == EPOCH_NS) == (column.name in INSTANTS)


def test_what_is_json_is_typed() -> None:
    for table in TABLES.values():
        for column in table.columns:
            is_json = "JSON" in column.comment
            key = (table.name, column.name)
            assert is_json == (key in JSON_ARRAYS or key in JSON_OBJECTS), key


def test_companions() -> None:
    names = ["topic", "from_ns", "time_ns", "window_end_ns", "parked_memory_ns"]
    assert with_companions(names) == (
        "topic", "from_ns", "from_time", "time_ns", "time", "window_end_ns", "window_end",
        "parked_memory_ns", "parked_memory_s",
    )  # fmt: skip


def test_absent_columns_are_typed_nulls() -> None:
    text = select_text(EVICTIONS, DUCKDB, "rows", ["time", "subscriptions"])
    assert '  "time",\n' in text
    assert '  CAST(NULL AS BIGINT) AS "messages",\n' in text
    assert text.endswith("\nFROM rows")
