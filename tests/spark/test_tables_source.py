"""Reading the tables in a session, with ``format("headgate_tables")``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from headgate.pipeline.session import prepare_session
from headgate.pipeline.source.data_source import HeadgateTables, register
from headgate.pipeline.spark_failures import reason_of
from tests.unit.pipeline.source.folder import append, minute_row, replace

COLUMNS = "hour,kind,minute,topic,completeness,msgs_in"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two hours of two topics; a third replaced the second hour."""
    folder = tmp_path_factory.mktemp("tables")
    rows = [minute_row(place, topic) for place in range(0, 120, 20) for topic in "ab"]
    append(folder, [*rows, minute_row(0, kind="subscription", subscription="s")])
    replace(folder, [1], [minute_row(80, "c", completeness=float("nan"))])
    return folder


@pytest.fixture
def session(spark: SparkSession) -> SparkSession:
    register(spark)
    return spark


def read(session: SparkSession, root: Path, **options: str) -> DataFrame:
    given = {"table": "intervals"} | options
    return session.read.format("headgate_tables").options(**given).load(str(root))


def values(rows: DataFrame, *names: str) -> Sequence[tuple[object, ...]]:
    return sorted(tuple(row) for row in rows.select(*names).collect())


def test_rows_filters_and_versions(session: SparkSession, root: Path) -> None:
    rows = read(session, root, columns=COLUMNS)
    assert rows.columns == COLUMNS.split(",")
    assert rows.count() == 8
    # One DataFrame may be used with several filters, also in one query.
    topics, hours = rows.where("kind = 'topic'"), rows.where("hour = 11")
    assert (topics.count(), hours.count(), rows.count()) == (7, 1, 8)
    assert topics.join(hours, "topic", "left").count() == 7
    given = {"since": "2025-11-21T10:20:00Z", "kinds": "topic", "columns": COLUMNS}
    assert read(session, root, **given).count() == 5
    assert read(session, root, versionAsOf="1").count() == 13


def test_a_dataframe_that_is_filtered_once(session: SparkSession, root: Path) -> None:
    def filtered(condition: str) -> DataFrame:
        return read(session, root, columns=COLUMNS, pushFilters="true").where(condition)

    late = filtered(
        "kind = 'topic' AND minute >= TIMESTAMP'2025-11-21T10:20:00Z' AND topic LIKE 'b%'"
        " AND hour IN (10, 11) AND NOT (msgs_in <=> 3)"
    )
    assert values(late, "topic", "msgs_in") == [("b", 20), ("b", 40)]
    # For Spark, NaN is larger than any number.
    assert values(filtered("completeness > 2"), "topic") == [("c",)]


def test_a_view_of_the_tables_in_sql(session: SparkSession, root: Path) -> None:
    session.sql(
        "CREATE OR REPLACE TEMPORARY VIEW minutes_of_topics USING headgate_tables"
        f" OPTIONS (path '{root}', table 'intervals')"
    )
    found = session.sql("SELECT sum(msgs_in) AS total FROM minutes_of_topics WHERE kind = 'topic'")
    assert found.collect()[0].total == 200


def test_a_stream_continues_from_its_checkpoint(session: SparkSession, tmp_path: Path) -> None:
    tables = tmp_path / "tables"
    tables.mkdir()

    def run() -> list[tuple[object, ...]]:
        """All rows that the query has written after one more run."""
        changes = (
            session.readStream.format("headgate_tables")
            .options(table="intervals", readChangeFeed="true", columns="topic,msgs_in")
            .load(str(tables))
        )
        query = (
            changes.coalesce(1).writeStream.format("parquet")
            .option("path", str(tmp_path / "rows"))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )  # fmt: skip
        query.awaitTermination()
        return list(
            values(session.read.parquet(str(tmp_path / "rows")), "topic", "msgs_in", "change")
        )

    append(tables, [minute_row(place) for place in range(5)])
    first = [("a", place, "new") for place in range(3)]
    assert run() == first
    replace(tables, [0], [minute_row(place, msgs_in=place * (place != 1)) for place in range(6)])
    assert run() == sorted([*first, ("a", 0, "corrected"), ("a", 3, "new")])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"table": "interval"}, "option table='interval' is no table; did you mean intervals?"),
        ({"versionAsOf": "x"}, "option versionAsOf='x': a whole number"),
        ({"versionAsOf": "77"}, "option versionAsOf=77: table intervals has versions 0 to 2"),
    ],
)
def test_a_bad_option_is_one_sentence(
    session: SparkSession, root: Path, options: dict[str, str], said: str
) -> None:
    with pytest.raises(PySparkException) as error:
        read(session, root, **options).count()
    assert "Traceback" not in str(error.value)
    assert reason_of(str(error.value)).startswith(said)


def test_a_session_made_of_one_that_knows_a_source_finds_it(
    spark: SparkSession, root: Path
) -> None:
    """Spark refuses to register it there while the first is active, and does not find it either."""
    prepare_session(spark)
    spark.createDataFrame([], "value int")  # makes it active
    made = spark.newSession()
    with pytest.raises(AnalysisException, match="DATA_SOURCE_ALREADY_EXISTS"):
        made.dataSource.register(HeadgateTables)
    prepare_session(made)
    assert read(made, root).count() == read(prepare_session(spark), root).count()
