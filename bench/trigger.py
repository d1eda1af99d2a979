"""One trigger of a stream: where the CPU goes when one more minute of telemetry arrives.

Each trigger brings one minute of generated telemetry (:mod:`bench.telemetry`), and all derived
tables and ``quality`` are brought up to date, as ``headgate pipeline stream`` does after a batch.
The first triggers also compile Java's code, so the median of the later ones is shown, too. CPU is
that of Java, of the Python workers and of the driver's Python.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession

from bench.processes import cpu_parts_s
from bench.report import Table, number
from bench.telemetry import Telemetry, write_part
from headgate.pipeline.derived.catalogue import DERIVED
from headgate.pipeline.quality import begin_quality, check_tables
from headgate.pipeline.refresh import refresh
from headgate.pipeline.session import create_session
from headgate.pipeline.spark_options import SparkOptions
from headgate.pipeline.store.delta_log import commit_append, ensure_table, table_files
from headgate.pipeline.tables.bronze import BRONZE_SAMPLES
from headgate.pipeline.tables.catalogue import TABLES
from headgate.pipeline.tables.quality import QUALITY

SUBSCRIPTIONS: Final = 1_000
FIRST_MINUTES: Final = 4
TRIGGERS: Final = 12
SETTLED: Final = 4
"""The first triggers, which the medians leave out."""
CORES: Final = 2


@dataclass(frozen=True, slots=True)
class Spent:
    """What some work took."""

    wall_s: float
    java_s: float
    workers_s: float
    python_s: float
    jobs: int
    tasks: int

    @property
    def cpu_s(self) -> float:
        """CPU of all processes."""
        return self.java_s + self.workers_s + self.python_s

    def __str__(self) -> str:
        """One line."""
        return (
            f"CPU {number(self.cpu_s)} s (Java {number(self.java_s)}, workers"
            f" {number(self.workers_s)}, driver {number(self.python_s)}), {number(self.wall_s)} s,"
            f" {self.jobs:,} jobs, {self.tasks:,} tasks"
        )


class Meter:
    """Measures work of one Spark session."""

    def __init__(self, spark: SparkSession) -> None:
        self._context: Any = spark.sparkContext

    def _jobs(self) -> tuple[int, int]:
        jobs = self._context._jsc.sc().statusStore().jobsList(None)
        return jobs.size(), sum(jobs.apply(place).numTasks() for place in range(jobs.size()))

    def spent(self, work: Callable[[], object]) -> Spent:
        """Do the work."""
        jobs, tasks = self._jobs()
        (java, workers), own, wall = cpu_parts_s(), time.process_time(), time.perf_counter()
        work()
        wall, own = time.perf_counter() - wall, time.process_time() - own
        (java_after, workers_after), (jobs_after, tasks_after) = cpu_parts_s(), self._jobs()
        return Spent(
            wall, java_after - java, workers_after - workers, own, jobs_after - jobs,
            tasks_after - tasks,
        )  # fmt: skip


def added(found: list[Spent]) -> Spent:
    """The sum."""
    names = Spent.__slots__
    return Spent(*(sum(getattr(each, name) for each in found) for name in names))


def append(root: str, telemetry: Telemetry, first_minute: int) -> None:
    """Append the telemetry from a minute on to bronze."""
    files = [f for part in telemetry.parts(first_minute) for f in write_part(root, telemetry, part)]
    commit_append(root, BRONZE_SAMPLES, files, None)


def bring_up_to_date(meter: Meter, spark: SparkSession, root: str) -> dict[str, Spent]:
    """What each table took."""
    found = {
        derived.name: meter.spent(lambda derived=derived: refresh(spark, root, derived))  # type: ignore[misc]
        for derived in DERIVED
    }
    return found | {QUALITY.name: meter.spent(lambda: check_tables(root))}


def run(root: str, subscriptions: int, first: int, triggers: int) -> list[dict[str, Spent]]:
    """The triggers, after a first refresh."""
    ensure_table(root, BRONZE_SAMPLES)
    for table in TABLES.values():
        ensure_table(root, table)
    begin_quality(root)
    options = SparkOptions(cores=CORES, conf=("spark.ui.retainedJobs=100000",))
    spark = create_session("bench", options=options, log_path=Path(root, "_s.log"), is_long=True)
    meter = Meter(spark)
    append(root, Telemetry(subscriptions, first), 0)
    bring_up_to_date(meter, spark, root)
    found = []
    for minute in range(first, first + triggers):
        append(root, Telemetry(subscriptions, minute + 1), minute)
        found.append(bring_up_to_date(meter, spark, root))
        print(f"minute {minute}: {added([*found[-1].values()])}", file=sys.stderr, flush=True)
    spark.stop()
    return found


def median(found: list[Spent]) -> Spent:
    """The median of each figure."""
    return Spent(*(statistics.median(getattr(s, name) for s in found) for name in Spent.__slots__))


def main() -> None:
    """Print what triggers take, and the median of each table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--subscriptions", type=int, default=SUBSCRIPTIONS)
    parser.add_argument("--first", type=int, default=FIRST_MINUTES, help="minutes before; 4")
    parser.add_argument("--triggers", type=int, default=TRIGGERS, help="12")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="headgate-trigger-") as root:
        found = run(root, options.subscriptions, options.first, options.triggers)
        files = table_files(ensure_table(root, TABLES["intervals"]))
    table = Table(f"one minute of {options.subscriptions:,} subscriptions arrives")
    table.add("first trigger", str(added([*found[0].values()])))
    settled = found[min(SETTLED, len(found) - 1) :]
    for name in found[0]:
        table.add(f"{name}, median", str(median([each[name] for each in settled])))
    table.add("all, median", str(median([added([*each.values()]) for each in settled])))
    table.add("files of intervals at the end", f"{len(files):,}")
    table.print()


if __name__ == "__main__":
    main()
