"""The scripts make the views of a folder; DuckDB runs its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

from headgate.base.errors import InputError
from headgate.pipeline.sql.dialect import DELTA, DUCKDB, SPARK
from headgate.pipeline.sql.script import folder_columns, view_script
from headgate.pipeline.sql.view_texts import SQL_VIEWS
from tests.unit.pipeline.report.folder import quota_row, write
from tests.unit.pipeline.sql.folder import filled, in_order, live_rows, shown_rows


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return filled(tmp_path_factory.mktemp("tables"))


@pytest.fixture(scope="module")
def engine(root: Path) -> Any:
    """DuckDB with the script's views. A macro stands for its extension ``delta``, which is a
    download."""
    with duckdb.connect() as connection:
        connection.execute("set timezone = 'UTC'")
        for name in folder_columns(str(root)):
            connection.register("rows_of_table", live_rows(root, name))
            connection.execute(f"create table live_{name} as from rows_of_table")
        connection.execute(
            "create macro delta_scan(url) as table"
            " from query_table('live_' || regexp_extract(url, '[^/]+$'))"
        )
        script = view_script(str(root), DUCKDB)
        assert script.count("INSTALL delta;\nLOAD delta;\n") == 1
        connection.execute(script.replace("INSTALL delta;\nLOAD delta;\n", ""))
        yield connection


def rows(engine: Any, query: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = engine.sql(query).to_arrow_table().to_pylist()
    return found


@pytest.mark.parametrize("view", SQL_VIEWS)
def test_a_view_has_the_rows_that_show_prints(engine: Any, root: Path, view: str) -> None:
    found = in_order(rows(engine, f"from {view}"))
    assert list(found[0]) == list(SQL_VIEWS[view].columns)
    expected = shown_rows(root, view)
    assert len(found) == len(expected) > 0
    for row, wanted in zip(found, expected, strict=True):
        for name, value in wanted.items():
            is_float = isinstance(value, float)
            assert row[name] == (pytest.approx(value, abs=1e-9) if is_float else value), name


def test_types_for_reports(engine: Any, root: Path) -> None:
    (found,) = rows(
        engine,
        "select *, epoch_us(segment_start_time) as us from episodes order by all limit 1",
    )
    assert found["us"] * 1_000 == found["segment_start_ns"]
    assert found["oldest_age_max_s"] == pytest.approx(found["oldest_age_max_ns"] / 1e9)
    lost = rows(engine, "select unnest(subscriptions, recursive := true) from evictions limit 1")
    assert lost == [{"subscription": "audit", "messages": 100, "bytes": 1_000}]
    waiters = rows(
        engine, "select list_sum([w.granted for w in waiters]) as all from throttle_timeline"
    )
    assert [row["all"] for row in waiters] == [10, None]
    (law,) = rows(engine, "select settings['law'] as law from policy_backtest limit 1")
    assert law["law"] == "drain"


def test_a_column_that_an_older_folder_lacks_is_null(engine: Any) -> None:
    (row,) = rows(engine, "select evicted, typeof(evicted) as type from attribution limit 1")
    assert row == {"evicted": None, "type": "BIGINT"}


def test_only_views_whose_tables_are_there(tmp_path: Path) -> None:
    write(tmp_path, "quota_usage", [quota_row(0)])
    script = view_script(str(tmp_path), DUCKDB)
    assert "VIEW quota_usage AS" in script
    assert "namespace_rollup" not in script
    with pytest.raises(InputError, match="there is no folder"):
        view_script(str(tmp_path / "none"), SPARK)


def test_spark_reads_by_the_data_source_or_by_a_delta_connector(root: Path) -> None:
    spark, delta = view_script(str(root), SPARK), view_script(str(root), DELTA)
    assert f"OPTIONS (path '{root}', table 'episodes')" in spark
    assert "USING headgate_tables" in spark
    assert f"FROM delta.`file://{root}/episodes`" in delta
    assert "headgate_tables" not in delta
    # Behind FROM both have the same text, so that a test of one is a test of the other.
    of_views = [
        script.split("VIEW backlog_episodes AS")[1].replace("TEMPORARY ", "")
        for script in (spark, delta)
    ]
    assert of_views[0] == of_views[1]
