"""Names, texts and nulls in each engine's SQL."""

from __future__ import annotations

import pytest

from headgate.pipeline.sql.dialect import DELTA, DIALECTS, DUCKDB, SPARK, Dialect, text_literal
from headgate.pipeline.tables.columns import ColumnType


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=lambda dialect: dialect.name)
def test_each_type_has_a_name(dialect: Dialect) -> None:
    assert set(dialect.types) == set(ColumnType)
    assert dialect.null(ColumnType.LONG) == "CAST(NULL AS BIGINT)"


def test_quotes() -> None:
    assert (SPARK.name_of("use"), DUCKDB.name_of("use")) == ("`use`", '"use"')
    assert text_literal("it's") == "'it''s'"


def test_rows_of_a_delta_table() -> None:
    assert SPARK.rows is None
    assert DUCKDB.rows is not None
    assert DUCKDB.rows("file:///t/x") == "delta_scan('file:///t/x')"
    assert DELTA.rows is not None
    assert DELTA.rows("file:///t/x") == "delta.`file:///t/x`"
