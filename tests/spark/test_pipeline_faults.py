"""A batch that is interrupted at any point gives every row once after a restart."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from headgate.pipeline import session
from headgate.pipeline.derived.catalogue import DERIVED
from headgate.pipeline.failures import PipelineError
from headgate.pipeline.options import SourceOptions
from headgate.pipeline.session import prepare_session
from headgate.pipeline.source.data_source import HeadgateTables
from headgate.pipeline.store.delta_writer import BRONZE, TablesWriter
from headgate.pipeline.store.folder import checkpoint_path
from headgate.pipeline.store.housekeeping.vacuum import vacuum
from headgate.pipeline.store.parquet_files import FileAdded
from headgate.pipeline.streaming.query import start_query
from headgate.pipeline.tables.attribution import ATTRIBUTION
from headgate.pipeline.tables.catalogue import TABLES
from headgate.pipeline.tables.intervals import INTERVALS
from tests.spark.telemetry_topic import Topic, fill, rows_of
from tests.unit.pipeline.play import SITUATIONS, T0, Broker, S
from tests.unit.pipeline.quota_play import quota_play

POINTS = (
    "before write",
    "in the middle of write",
    "before commit",
    "after one table's commit",
    "after commit",
)


def messages() -> list[bytes]:
    """Rows of all tables on both sides of an hour, and what is no row."""
    start_ns = T0 + 3_560 * S
    player = Broker(start_ns=start_ns, situations=SITUATIONS[:4])
    held = quota_play(80, start_ns=start_ns, source="b2", boot="boot-2")
    return [b"not a record", *(m for _ in range(8) for m in player.window(10)), *held]


def failing_at(point: str, table: str) -> type[HeadgateTables]:
    """The tables' writer, which fails at a point of each write to ``table``.

    Its classes are made here, so that Spark's workers get them with the data source.
    """

    class FailingWriter(TablesWriter):
        def _pass(self, here: str) -> None:
            if self.table == table and here == point:
                raise RuntimeError(f"cut off {point}")

        def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
            self._pass("before write")
            return super().write(iterator)

        def rows(self, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[str, pa.Table]]:
            for pair in super().rows(batches):
                yield pair
                self._pass("in the middle of write")

        def commit(self, messages: list[WriterCommitMessage | None]) -> None:
            self._pass("before commit")
            super().commit(messages)
            self._pass("after commit")

        def commit_table(self, name: str, files: list[FileAdded]) -> None:
            super().commit_table(name, files)
            self._pass("after one table's commit")

    class FailingTables(HeadgateTables):
        def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
            return FailingWriter(dict(self.options))

    return FailingTables


@pytest.fixture(scope="module")
def undisturbed(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, pa.Table]:
    """All tables as a run that nothing cuts off leaves them."""
    folder = tmp_path_factory.mktemp("undisturbed")
    topic = Topic(folder / "topic")
    topic.publish(messages())
    fill(folder / "tables", topic)
    found = tables_of(folder / "tables")
    assert all(found[table.name].num_rows for table in DERIVED)
    return found


def tables_of(out: Path) -> dict[str, pa.Table]:
    return {name: rows_of(out, name) for name in TABLES}


@pytest.mark.parametrize("table", [BRONZE, INTERVALS.name, ATTRIBUTION.name])
def test_an_interrupted_batch_is_repeated_once(
    table: str,
    undisturbed: dict[str, pa.Table],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each run gets as far as the next point, over what the one before left."""
    out, topic = tmp_path / "tables", Topic(tmp_path / "topic")
    topic.publish(messages())
    # A table that is alone in its write is done with its one commit.
    for point in POINTS if table == BRONZE else POINTS[:-1]:
        with monkeypatch.context() as patch:
            patch.setattr(session, "HeadgateTables", failing_at(point, table))
            with pytest.raises(PipelineError, match=f"cut off {point}"):
                fill(out, topic)
    fill(out, topic)
    assert tables_of(out) == undisturbed
    assert vacuum(str(out), 0, False)
    assert tables_of(out) == undisturbed


def test_a_batch_interrupted_before_spark_s_commit_is_repeated_once(
    spark: SparkSession, undisturbed: dict[str, pa.Table], tmp_path: Path
) -> None:
    out, topic = tmp_path / "tables", Topic(tmp_path / "topic")
    topic.publish(messages())
    prepare_session(spark)

    def die(*_: Any) -> None:
        raise RuntimeError("cut off before Spark's commit")

    for _ in range(2):
        query = start_query(
            topic.stream(spark),
            str(out),
            checkpoint_path(SourceOptions(str(out))),
            trigger_s=None,
            after=die,
        )
        with pytest.raises(PySparkException, match="cut off before Spark's commit"):
            query.awaitTermination()
        assert rows_of(out, "bronze_samples") == undisturbed["bronze_samples"]
    fill(out, topic)
    assert tables_of(out) == undisturbed
