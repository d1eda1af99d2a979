"""What a join brings into the driver: nothing whose size was only guessed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from headgate.pipeline.kernels.episodes import NewestMinutes
from headgate.pipeline.session import open_settings
from headgate.pipeline.steps.attribution import MINUTE_COLUMNS, attribution, rates_up_to
from headgate.pipeline.steps.episodes import MINUTE_COLUMNS as FIGURE_COLUMNS
from headgate.pipeline.steps.episodes import VERDICT_COLUMNS, episodes
from headgate.pipeline.steps.joins import left_join
from headgate.pipeline.tables.attribution import ATTRIBUTION
from headgate.pipeline.tables.columns import HOUR_NS
from headgate.pipeline.tables.demonstrated_rates import DEMONSTRATED_RATES
from headgate.pipeline.tables.intervals import INTERVALS
from headgate.pipeline.tables.schemas import part_schema
from headgate.pipeline.tables.touched_minutes import TouchedMinutes
from tests.unit.pipeline.story_play import BEGIN

HOUR = BEGIN // HOUR_NS
BROADCAST = "BroadcastExchange"


@pytest.fixture
def own_settings(spark: SparkSession) -> Iterator[None]:
    """The session has the settings of one that the pipeline starts."""
    given = open_settings(lambda _: False)
    before = {name: spark.conf.get(name, None) for name in given}
    for name, value in given.items():
        spark.conf.set(name, value)
    yield
    for name, found in before.items():
        if found is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, found)


def small_file(spark: SparkSession, path: Path, schema: StructType) -> DataFrame:
    """A file that Spark takes for few rows, because it cannot know that it has none."""
    spark.createDataFrame([], schema).write.parquet(str(path))
    return spark.read.schema(schema).parquet(str(path))


def plan(rows: DataFrame) -> str:
    return str(rows._jdf.queryExecution().executedPlan().toString())


def test_verdicts_and_figures_are_not_joined(spark: SparkSession, tmp_path: Path) -> None:
    rows = episodes(
        small_file(spark, tmp_path / "judged", part_schema(ATTRIBUTION, VERDICT_COLUMNS)),
        small_file(spark, tmp_path / "minutes", part_schema(INTERVALS, FIGURE_COLUMNS)),
        [HOUR],
        NewestMinutes({}, HOUR),
    )
    assert "Join" not in plan(rows)
    assert plan(rows).count("Exchange") == 1


@pytest.mark.usefixtures("own_settings")
@pytest.mark.parametrize("are_few", [False, True])
def test_minutes_are_judged_by_broadcasts_only_where_these_are_small(
    spark: SparkSession, tmp_path: Path, *, are_few: bool
) -> None:
    touched = TouchedMinutes.whole([HOUR])
    hourly = small_file(spark, tmp_path / "rates", part_schema(DEMONSTRATED_RATES, None))
    rows = attribution(
        small_file(spark, tmp_path / "minutes", part_schema(INTERVALS, MINUTE_COLUMNS)),
        rates_up_to(hourly, touched),
        touched,
        broadcast=are_few,
    )
    assert plan(rows).count(BROADCAST) == (2 if are_few else 0)


@pytest.mark.usefixtures("own_settings")
def test_a_join_is_planned_by_the_size_of_the_rows_after_their_shuffle(
    spark: SparkSession, tmp_path: Path
) -> None:
    def numbers(name: str) -> DataFrame:
        path = str(tmp_path / name)
        spark.range(100).write.parquet(path)
        return spark.read.parquet(path)

    rows = left_join(numbers("left"), numbers("right"), ("id",))
    assert BROADCAST not in plan(rows)
    assert len(rows.collect()) == 100
    assert BROADCAST in plan(rows)
