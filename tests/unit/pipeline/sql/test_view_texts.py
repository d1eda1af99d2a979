"""The texts of the views; ``test_script`` and the Spark lane run them."""

from __future__ import annotations

import pytest

from headgate.pipeline.sql.dialect import DUCKDB, SPARK
from headgate.pipeline.sql.view_texts import SQL_VIEWS, View
from headgate.pipeline.tables.catalogue import TABLES, VIEWS


def test_every_view_of_the_catalogue_has_a_text() -> None:
    assert set(SQL_VIEWS) == set(VIEWS)
    assert all(VIEWS[view.name] in view.follows_from for view in SQL_VIEWS.values())
    assert all(set(view.follows_from) <= set(TABLES) for view in SQL_VIEWS.values())


@pytest.mark.parametrize("view", SQL_VIEWS.values(), ids=lambda view: view.name)
def test_engines_differ_in_their_functions_alone(view: View) -> None:
    spark, duckdb = view.sql(SPARK), view.sql(DUCKDB)
    assert "{" not in spark + duckdb
    same = spark.replace("timestamp_micros", "make_timestamptz").replace(" DIV ", " // ")
    assert same == duckdb
