"""Files that a write of many hours makes: about one for each partition of each table."""

from __future__ import annotations

import io
from collections import Counter
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from headgate.pipeline import jobs
from headgate.pipeline.backtest.grid import parse_grid
from headgate.pipeline.backtest.job import run_backtest
from headgate.pipeline.progress import Progress
from headgate.pipeline.session import prepare_session
from headgate.pipeline.store.delta_log import table_files
from headgate.pipeline.store.housekeeping.compact import Compacted
from headgate.pipeline.tables.attribution import ATTRIBUTION
from headgate.pipeline.tables.bronze import BRONZE_SAMPLES
from headgate.pipeline.tables.intervals import INTERVALS
from headgate.pipeline.tables.policy_backtest import POLICY_BACKTEST
from headgate.pipeline.tables.publishing import PUBLISH_ATTRIBUTION, THROTTLE_TIMELINE
from tests.spark.conftest import many_tasks
from tests.spark.telemetry_topic import Topic, fill
from tests.unit.pipeline.play import SITUATIONS, T0, Broker, S

COALESCE = "spark.sql.adaptive.coalescePartitions.enabled"

WRITTEN = (BRONZE_SAMPLES, INTERVALS, ATTRIBUTION, PUBLISH_ATTRIBUTION, THROTTLE_TIMELINE)

HOURS = 40
"""More partitions than files that a writer keeps open."""


@pytest.fixture(scope="module")
def filled(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables of many hours of several brokers, each read by a task of its own in one batch."""
    topic, root = Topic(tmp_path_factory.mktemp("topic") / "messages"), tmp_path_factory.mktemp("t")
    for broker in range(3):
        topic.publish(
            [
                message
                for hour in range(HOURS)
                for message in Broker(
                    SITUATIONS,
                    start_ns=T0 + hour * 3_600 * S,
                    boot=f"boot-{hour}",
                    source=f"b{broker}",
                ).window(70)
            ]
        )
    with pytest.MonkeyPatch.context() as patch, many_tasks():
        # The files are to be looked at as they were written.
        patch.setattr(jobs, "merge_after_run", lambda _: Compacted())
        # As where there are so many rows that they need several tasks.
        spark.conf.set(COALESCE, "false")
        try:
            fill(root, topic, *WRITTEN[1:])
        finally:
            spark.conf.unset(COALESCE)
    return root


def files_by_partition(root: Path, table: str) -> Counter[tuple[str, ...]]:
    files = table_files(DeltaTable(root / table))
    return Counter(tuple(file.partition.values()) for file in files)


@pytest.mark.parametrize("name", [table.name for table in WRITTEN])
def test_a_write_of_many_hours_makes_one_file_for_each_partition(filled: Path, name: str) -> None:
    found = files_by_partition(filled, name)
    assert len(found) >= HOURS
    assert max(found.values()) == 1


def test_a_backtest_writes_few_files(spark: SparkSession, filled: Path) -> None:
    grid = parse_grid('[[points]]\nname = "limit"\npublish = { messages_per_s = 5 }\n')
    session = prepare_session(spark)
    run_backtest(session, str(filled), grid, None, None, "a", Progress(io.StringIO()))
    assert [*files_by_partition(filled, POLICY_BACKTEST.name).values()] == [1]
