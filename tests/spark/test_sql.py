"""``headgate pipeline sql``, and the script for Spark, over a folder of tables."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate.base.errors import InputError
from headgate.pipeline.options import FolderOptions, SqlOptions
from headgate.pipeline.queries.sql import FolderQueries, run_sql
from headgate.pipeline.session import prepare_session
from headgate.pipeline.source.data_source import register
from headgate.pipeline.sql.dialect import SPARK
from headgate.pipeline.sql.script import folder_columns, view_script
from headgate.pipeline.sql.view_texts import SQL_VIEWS
from tests.unit.pipeline.sql.folder import filled, in_order, shown_rows


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return filled(tmp_path_factory.mktemp("tables"))


@pytest.fixture(scope="module")
def queries(spark: SparkSession, root: Path) -> FolderQueries:
    return FolderQueries(prepare_session(spark), str(root), folder_columns(str(root)))


def check_view(found: list[dict[str, Any]], root: Path, view: str) -> None:
    """Check that rows are those that ``show`` prints, and have the view's columns."""
    assert list(found[0]) == list(SQL_VIEWS[view].columns)
    expected = shown_rows(root, view)
    assert len(found) == len(expected) > 0
    for row, wanted in zip(in_order(found), expected, strict=True):
        for name, value in wanted.items():
            is_float = isinstance(value, float)
            assert row[name] == (pytest.approx(value, abs=1e-9) if is_float else value), name


@pytest.mark.parametrize("view", SQL_VIEWS)
def test_a_view_has_the_rows_that_show_prints(
    queries: FolderQueries, root: Path, view: str
) -> None:
    check_view(queries.rows(f"FROM {view};").toArrow().to_pylist(), root, view)


def test_types_for_reports(queries: FolderQueries) -> None:
    found = queries.rows(
        "SELECT topic, topic, time, subscriptions[0].messages AS lost FROM Evictions LIMIT 1"
    )
    assert found.columns == ["topic", "topic_2", "time", "lost"]
    assert found.collect()[0].lost == 100
    sums = queries.rows(
        "SELECT aggregate(waiters, 0L, (sum, w) -> sum + w.granted) AS granted, waiting_s"
        " FROM throttle_timeline ORDER BY minute"
    ).collect()
    assert [tuple(row) for row in sums] == [(10, 30.0), (None, 30.0)]
    law = "SELECT settings['law'] AS law, segment_start_time FROM policy_backtest, episodes LIMIT 1"
    assert queries.rows(law).collect()[0].law == "drain"


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("select topik from episodes", "there is no column 'topik'; did you mean topic? episodes"),
        ("select * from episode", "there is no table 'episode'; did you mean episodes? there are"),
        ("select * form episodes", "the query cannot run: Syntax error at or near 'episodes'"),
        ("select sum(topic, 1) from episodes", "the query cannot run: The `sum` requires 1 param"),
        ("drop view episodes", "DROP is not for this command"),
    ],
)
def test_a_faulty_query_is_one_sentence(queries: FolderQueries, query: str, said: str) -> None:
    with pytest.raises(InputError) as error:
        queries.rows(query).collect()
    assert str(error.value).startswith(said)
    assert "\n" not in str(error.value)


def test_rows_as_json_csv_and_a_table(root: Path) -> None:
    def written(query: str, count: int | None = None, **options: Any) -> tuple[str, str]:
        out, err = io.StringIO(), io.StringIO()
        run_sql(query, SqlOptions(FolderOptions(str(root), **options), count), out, err)
        return out.getvalue(), err.getvalue()

    out, _ = written(
        "SELECT time, subscriptions, 1.5 AS half FROM evictions ORDER BY time LIMIT 1",
        format="json",
    )
    assert json.loads(out) == [
        {
            "time": "2025-11-21T10:00:00Z",
            "subscriptions": [{"subscription": "audit", "messages": 100, "bytes": 1_000}],
            "half": 1.5,
        }
    ]
    out, err = written("SELECT acts FROM evictions", format="csv", count=2)
    assert out == "acts\n1\n1\n"
    assert err.endswith("The first 2 rows; --count shows more.\n")
    out, err = written("SELECT acts FROM evictions WHERE acts > 9")
    assert (out, err.split("\n")[-2]) == ("", "No rows.")


def test_a_range_is_all_that_queries_see(root: Path) -> None:
    out = io.StringIO()
    options = SqlOptions(
        FolderOptions(str(root), "2025-11-21T10:01:00Z", "2025-11-21T10:02:00Z", format="csv")
    )
    query = (
        "SELECT (SELECT count(*) FROM evictions), count(DISTINCT minute), min(minute)"
        " FROM namespace_rollup"
    )
    run_sql(query, options, out, io.StringIO())
    assert out.getvalue().split("\n")[1] == "1,1,2025-11-21T10:01:00Z"


def test_the_script_makes_the_views_in_a_session(spark: SparkSession, root: Path) -> None:
    register(spark)
    for statement in view_script(str(root), SPARK).split(";\n"):
        if statement.strip():
            spark.sql(statement)
    for view in SQL_VIEWS:
        check_view(spark.table(view).toArrow().to_pylist(), root, view)
