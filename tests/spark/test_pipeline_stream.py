"""The work of ``stream`` around its batches: catching up, compaction, metrics, gaps."""

from __future__ import annotations

import io
import os
import re
import urllib.request
from pathlib import Path

import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from headgate.base.errors import InputError
from headgate.pipeline import jobs
from headgate.pipeline.options import (
    BacktestOptions,
    CompactOptions,
    FolderOptions,
    SourceOptions,
    StreamOptions,
)
from headgate.pipeline.queries.backtest import run_backtest
from headgate.pipeline.store.delta_log import commit_append, ensure_table, table_files
from headgate.pipeline.store.housekeeping.job import run_compact
from headgate.pipeline.store.housekeeping.periodic import FILES_MAX
from headgate.pipeline.store.housekeeping.small_files import EVERYTHING, small_file_groups
from headgate.pipeline.store.parquet_files import write_tables
from headgate.pipeline.tables.attribution import ATTRIBUTION
from headgate.pipeline.tables.bronze import BRONZE_SAMPLES
from headgate.pipeline.tables.intervals import INTERVALS
from tests.spark.telemetry_topic import Topic, computing, rows_of
from tests.unit.pipeline.play import SITUATIONS, T0, Broker, S, bronze


class Metrics:
    """The figures that a stream serves, by name and labels."""

    def __init__(self, said: str) -> None:
        (url,) = re.findall(r"Metrics at (\S+)", said)
        with urllib.request.urlopen(url, timeout=10) as answer:
            text = answer.read().decode()
        lines = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
        self._values = {name: float(value) for name, _, value in lines}

    @property
    def lag_s(self) -> float:
        return self._values["headgate_pipeline_lag_seconds"]

    def rows(self, table: str) -> float:
        return self._values[f'headgate_pipeline_table_rows{{table="{table}"}}']


def fill_bronze(root: Path, broker: Broker, batches: int) -> None:
    """Bronze as so many small batches leave it; nothing is derived from it yet."""
    ensure_table(str(root), BRONZE_SAMPLES)
    for batch in range(batches):
        named = [(BRONZE_SAMPLES.name, bronze(broker.window()))]
        files = write_tables(str(root), f"task-{batch}", named)
        commit_append(str(root), BRONZE_SAMPLES, files, None)


@pytest.mark.usefixtures("spark")
def test_a_stream_computes_existing_telemetry_without_waiting(tmp_path: Path) -> None:
    root, topic = tmp_path / "tables", Topic(tmp_path / "topic")
    fill_bronze(root, Broker(), 2)
    err = io.StringIO()
    options = StreamOptions(SourceOptions(str(root)), trigger_s=0.1)
    with computing(INTERVALS, ATTRIBUTION):
        jobs.run_stream(options, err, messages=topic.stream, should_stop=lambda: True)
    assert "batch" not in err.getvalue()
    assert rows_of(root, "attribution").num_rows == len(SITUATIONS)
    assert rows_of(root, "intervals").num_rows > len(SITUATIONS)


def test_a_stream_compacts_counts_and_prints_after_each_batch(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Two batches: an hour later, and of a boot whose beginning was trimmed."""
    del spark
    root, topic, err = tmp_path / "tables", Topic(tmp_path / "topic"), io.StringIO()
    broker = Broker()
    fill_bronze(root, broker, FILES_MAX)
    found: list[Metrics] = []

    def is_crowded() -> bool:
        live = table_files(DeltaTable(root / BRONZE_SAMPLES.name))
        return bool(small_file_groups(live, EVERYTHING))

    def next_batch() -> bool:
        """Whether both batches are done; publishes the second when the first is."""
        if f"batch {len(found)}:" not in err.getvalue():
            return False
        found.append(Metrics(err.getvalue()))
        if len(found) == 2:
            return True
        later = Broker(start_ns=T0 + 3_600 * S, boot="boot-2")
        for _ in range(3):
            later.window()
        topic.publish(later.window(10))
        return False

    assert is_crowded()
    topic.publish(broker.window())
    options = StreamOptions(SourceOptions(str(root)), 0.1, 0)
    with computing(INTERVALS):
        jobs.run_stream(options, err, messages=topic.stream, should_stop=next_batch)
    first, second = found
    assert second.rows(BRONZE_SAMPLES.name) > first.rows(BRONZE_SAMPLES.name) > 0
    assert 3_000 < first.lag_s - second.lag_s < 3_700
    assert not is_crowded()
    assert re.findall(r"^Telemetry of .* is missing", err.getvalue(), re.MULTILINE) == [
        f"Telemetry of b1 from 2025-11-21 10:00:{FILES_MAX + 1:02d} UTC to 2025-11-21 11:00:03 UTC "
        "is missing"
    ]


@pytest.mark.usefixtures("spark")
def test_a_stream_is_compacted_and_backtested_while_it_runs(tmp_path: Path) -> None:
    """The stream goes on, and a second one is refused with its holder's name."""
    root, topic, err = tmp_path / "tables", Topic(tmp_path / "topic"), io.StringIO()
    grid, broker, done = tmp_path / "grid.toml", Broker(SITUATIONS[:3]), list[str]()
    grid.write_text('[[points]]\nname = "limit"\npublish = { messages_per_s = 5 }\n')
    options = StreamOptions(SourceOptions(str(root)), trigger_s=0.1)

    def work() -> bool:
        """Works once beside the first batch, then publishes the second and waits for it."""
        if not done and "batch 0:" in err.getvalue():
            run_compact(CompactOptions(str(root), 4_000, vacuum=True, vacuum_hours=0), err)
            done.append(
                run_backtest(BacktestOptions(FolderOptions(str(root)), str(grid)), err, err)
            )
            with pytest.raises(InputError, match=rf"another job \(process {os.getpid()} on"):
                jobs.run_stream(options, io.StringIO(), messages=topic.stream)
            topic.publish(broker.window(10))
        return bool(done) and "batch 1:" in err.getvalue()

    fill_bronze(root, broker, 3)
    topic.publish(broker.window(10))
    with computing(INTERVALS, ATTRIBUTION):
        jobs.run_stream(options, err, messages=topic.stream, should_stop=work)
    assert rows_of(root, "policy_backtest")["run_id"].unique().to_pylist() == done
    samples = rows_of(root, BRONZE_SAMPLES.name)
    assert samples.filter(pc.equal(samples["kind"], "batch")).num_rows == 5
    assert rows_of(root, "attribution").num_rows == 3
