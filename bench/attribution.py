"""Whose fault 20 million minutes were: the step ``attribution`` in Spark beside DuckDB.

Both read the same Delta table ``intervals`` (10,000 subscriptions, one in five of them in trouble),
work out the same columns and write them as Parquet on two cores. DuckDB runs the statement that is
the tests' oracle, which has no sentences; Spark writes these, too, into the table ``attribution``.
The session is warm, the sides take turns. A range over all minutes is judged at the end.
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import duckdb
from pyspark.sql import DataFrame, SparkSession

from bench.interval_rows import FIRST_HOUR, write_intervals
from bench.processes import check_memory, cpu_s, watched_memory
from bench.report import Table, median
from headgate.pipeline.session import batches_by_count, create_session
from headgate.pipeline.spark_options import SparkOptions
from headgate.pipeline.steps import attribution
from headgate.pipeline.store.delta_log import ensure_table, table_files
from headgate.pipeline.store.delta_writer import FORMAT
from headgate.pipeline.store.spark_reader import read_files
from headgate.pipeline.tables.attribution import ATTRIBUTION
from headgate.pipeline.tables.demonstrated_rates import DEMONSTRATED_RATES
from headgate.pipeline.tables.intervals import INTERVALS
from headgate.pipeline.tables.touched_minutes import TouchedMinutes
from tests.spark.attribution_oracle import SQL

SUBSCRIPTIONS: Final = 10_000
MINUTES, MINUTES_QUICK = 2_000, 200
CORES: Final = 2
TIMES_MAX: Final = 5.0
_INT64_MAX: Final = (1 << 63) - 1


@dataclass(frozen=True)
class Took:
    """What one turn took: by the wall clock, and of the CPUs."""

    wall_s: float
    cpu_s: float


def took(work: Callable[[], object], cpu: Callable[[], float]) -> Took:
    """Do it and look at both clocks."""
    wall_s, before_s = time.perf_counter(), cpu()
    work()
    return Took(time.perf_counter() - wall_s, cpu() - before_s)


def by_duckdb(root: str) -> Took:
    """The oracle's statement, written as one Parquet file."""
    return took(lambda: _ask_duckdb(root), time.process_time)


def _ask_duckdb(root: str) -> None:
    files = f"{root}/{INTERVALS.name}/*/*/*/*.parquet"
    with duckdb.connect() as connection:
        for setting in (f"threads = {CORES}", "timezone = 'UTC'", "enable_progress_bar = false"):
            connection.execute(f"set {setting}")
        connection.execute(
            f"create view intervals as from read_parquet('{files}', hive_partitioning = true)"
        )
        connection.execute(
            f"copy ({SQL}) to '{root}/duckdb.parquet' (format parquet, compression zstd)"
        )


def minutes_of(spark: SparkSession, root: str) -> DataFrame:
    """The table ``intervals``, as the pipeline reads it."""
    return read_files(spark, root, INTERVALS, table_files(ensure_table(root, INTERVALS)))


def by_spark(spark: SparkSession, root: str, hours: Collection[int]) -> None:
    """The step, into the table ``attribution``, as a refresh of these hours writes it."""
    ensure_table(root, ATTRIBUTION)
    with batches_by_count(spark):
        (
            judged(spark, root, hours)
            .write.format(FORMAT)
            .mode("append")
            .option("root", root)
            .option("table", ATTRIBUTION.name)
            .option("touched", TouchedMinutes.whole(hours).to_json())
            .save()
        )


def judged(spark: SparkSession, root: str, hours: Collection[int]) -> DataFrame:
    """The rows of ``attribution`` of some hours, with the demonstrated rates from the same minutes:
    both steps, without the table between them."""
    minutes, touched = minutes_of(spark, root), TouchedMinutes.whole(hours)
    nothing = read_files(spark, root, DEMONSTRATED_RATES, [])
    hourly = attribution.hourly_rates(minutes, nothing, touched)
    rates = attribution.rates_up_to(hourly, touched)
    return attribution.attribution(minutes, rates, touched, broadcast=True)


def step_alone(spark: SparkSession, root: str, hours: Collection[int]) -> None:
    """The step without a table to write."""
    _to_nowhere(spark, judged(spark, root, hours))


def range_alone(spark: SparkSession, root: str) -> None:
    """All minutes as one range, without the printing."""
    _to_nowhere(spark, attribution.range_judgements(minutes_of(spark, root), 0, _INT64_MAX))


def _to_nowhere(spark: SparkSession, rows: DataFrame) -> None:
    with batches_by_count(spark):
        rows.write.format("noop").mode("overwrite").save()


def tabulate(root: str, minutes: int, rounds: int) -> Table:
    """Both sides in turns, ``rounds`` times."""
    rows = write_intervals(root, SUBSCRIPTIONS, minutes)
    hours = range(FIRST_HOUR, FIRST_HOUR + -(-minutes // 60))
    spark = create_session(
        "bench", options=SparkOptions(cores=CORES), log_path=Path(root, "spark.log"), is_long=True
    )
    step_alone(spark, root, hours[-1:])  # workers, imports and the JVM's compiler are warm
    with watched_memory() as peaks:
        ask: list[Took] = []
        step: list[Took] = []
        # A process of its own, so that its memory is not the driver's.
        with multiprocessing.get_context("spawn").Pool(1) as other:
            for _ in range(rounds):
                ask.append(other.apply(by_duckdb, (root,)))
                step.append(took(lambda: by_spark(spark, root, hours), cpu_s))
        alone = took(lambda: step_alone(spark, root, hours), cpu_s)
        over_all = took(lambda: range_alone(spark, root), cpu_s)
    spark.stop()
    table = Table(f"attribution of {rows:,} minutes, {CORES} cores")
    table.add("DuckDB, without sentences", _text(*ask))
    table.add("Spark, into the table", _text(*step))
    cpu = median([s.cpu_s / d.cpu_s for s, d in zip(step, ask, strict=True)])
    wall = median([s.wall_s / d.wall_s for s, d in zip(step, ask, strict=True)])
    table.check("Spark / DuckDB, of the CPUs", cpu, "times", TIMES_MAX)
    table.check("the same by the clock", wall, "times", TIMES_MAX)
    table.add("Spark, the step alone", _text(alone))
    table.add("a range over all of it", _text(over_all))
    check_memory(table, peaks)
    return table


def _text(*turns: Took) -> str:
    wall_s = ", ".join(f"{turn.wall_s:.0f}" for turn in turns)
    return f"{wall_s} s ({', '.join(f'{turn.cpu_s:.0f}' for turn in turns)} s of CPU)"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the minutes")
    parser.add_argument("--rounds", type=int, default=3, help="turns of both sides; 3")
    options = parser.parse_args()
    minutes = MINUTES_QUICK if options.quick else MINUTES
    with tempfile.TemporaryDirectory(prefix="headgate-bench-") as root:
        tabulate(root, minutes, options.rounds).print()


if __name__ == "__main__":
    main()
