"""The pipeline over 10,000 to 1,000,000 subscriptions on a small cluster: what grows, and how.

Three shapes have about as many rows: 10,000 subscriptions over 24 hours, 100,000 over 3 hours and
1,000,000 over 20 minutes, about 90 million rows of subscriptions each. ``--scale`` multiplies the
subscriptions of all; the default runs on a laptop. Each shape has a driver of its own
and Spark's ``local-cluster`` with executors as separate processes. Its telemetry is generated
(:mod:`bench.telemetry`), each derived table is filled, and one minute and then four more arrive.

CPU time is that of all processes, also those of Spark that have ended. Java's memory is what lives
in the driver's heap after a collection, because the rest depends on the heap's size.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import pyspark
from pyspark.sql import SparkSession

from bench.processes import cpu_s, peak_mib, watched_memory
from bench.report import Table, number
from bench.telemetry import Telemetry, write_telemetry
from headgate.pipeline.derived.catalogue import DERIVED
from headgate.pipeline.refresh import refresh
from headgate.pipeline.session import create_session
from headgate.pipeline.spark_options import SparkOptions
from headgate.pipeline.store.delta_log import ensure_table, table_files
from headgate.pipeline.tables.bronze import BRONZE_SAMPLES

SHAPES: Final = ((10_000, 24 * 60), (100_000, 3 * 60), (1_000_000, 20))
"""Subscriptions and minutes."""
SCALE: Final = 0.01
TRIGGERS: Final = (1, 4)
"""Minutes that arrive after the first refresh."""
EXECUTORS, EXECUTOR_MIB = 2, 2_048
DRIVER_MEMORY: Final = "2g"
MEMORY_GROWTH_MAX: Final = 1.2
WORK_GROWTH_MAX: Final = 1.2
"""Of the CPU time for a row, from the first shape to the last."""
LIMIT_S: Final = 7_200.0

SPARK_HOME: Final = Path(pyspark.__file__).parent

Figures = dict[str, Any]


def cluster_session(folder: str) -> SparkSession:
    """A session whose executors are processes of their own."""
    os.environ |= {
        "MASTER": f"local-cluster[{EXECUTORS},1,{EXECUTOR_MIB}]",
        "SPARK_HOME": str(SPARK_HOME),
    }
    options = SparkOptions(
        driver_memory=DRIVER_MEMORY,
        conf=(
            f"spark.executor.memory={EXECUTOR_MIB}m",
            f"spark.sql.shuffle.partitions={8 * EXECUTORS}",
            "spark.ui.retainedStages=100000",
        ),
    )
    log_path = Path(folder, "spark.log")
    return create_session("bench", options=options, log_path=log_path, is_long=True)


def shuffled_bytes(spark: SparkSession) -> int:
    """Bytes that all stages so far wrote for shuffles."""
    java: Any = spark.sparkContext._jvm
    quantiles = spark.sparkContext._gateway.new_array(java.double, 0)
    nothing = java.java.util.ArrayList()
    store = spark.sparkContext._jsc.sc().statusStore()
    stages = store.stageList(nothing, False, False, quantiles, nothing)
    return sum(stages.apply(place).shuffleWriteBytes() for place in range(stages.size()))


def live_heap_mib(spark: SparkSession) -> float:
    """What lives in the heap of the driver's Java."""
    java: Any = spark.sparkContext._jvm
    java.System.gc()
    runtime = java.Runtime.getRuntime()
    return float(runtime.totalMemory() - runtime.freeMemory()) / (1 << 20)


class Stages:
    """Figures by stage of one shape."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self.figures: dict[str, Figures] = {}

    def run(self, name: str, work: Callable[[], object]) -> None:
        """Do the work of a stage."""
        wall_s, before_s, bytes_ = time.perf_counter(), cpu_s(), shuffled_bytes(self._spark)
        work()
        figures = {
            "wall_s": time.perf_counter() - wall_s,
            "cpu_s": cpu_s() - before_s,
            "shuffled_bytes": shuffled_bytes(self._spark) - bytes_,
            "heap_mib": live_heap_mib(self._spark),
            "python_mib": peak_mib()["python"],
        }
        self.figures[name] = figures
        print(f"  {name}: {stage_text(figures)}", file=sys.stderr, flush=True)


def stage_text(stage: Figures) -> str:
    """Time, CPU and shuffled bytes of a stage."""
    return (
        f"{number(stage['wall_s'])} s, CPU {number(stage['cpu_s'])} s, shuffled"
        f" {number(stage['shuffled_bytes'] / 1e6)} MB"
    )


def refresh_each(stages: Stages, spark: SparkSession, root: str, prefix: str) -> None:
    """Bring the derived tables up to date, each as a stage."""
    for derived in DERIVED:
        stages.run(
            f"{prefix}{derived.table.name}",
            lambda derived=derived: refresh(spark, root, derived),  # type: ignore[misc]
        )


def run_shape(subscriptions: int, minutes: int, folder: str, triggers: Sequence[int]) -> Figures:
    """All stages of one shape; ``triggers`` are the minutes that arrive after the first refresh."""
    root = f"{folder}/tables"
    Path(root).mkdir()
    spark = cluster_session(folder)
    spark.range(1).count()
    with watched_memory() as peaks:
        stages = Stages(spark)
        telemetry = Telemetry(subscriptions, minutes)
        stages.run("generate", lambda: write_telemetry(spark, root, telemetry))
        refresh_each(stages, spark, root, "")
        tables = {
            table.name: file_figures(root, table)
            for table in (BRONZE_SAMPLES, *(derived.table for derived in DERIVED))
        }
        for more in triggers:
            later = Telemetry(subscriptions, minutes + more)
            write_telemetry(spark, root, later, first_minute=minutes)
            refresh_each(stages, spark, root, f"+{more} min ")
            minutes += more
    work = SPARK_HOME / "work" / spark.sparkContext.applicationId
    spark.stop()
    # Spark's local cluster keeps what its executors print there.
    shutil.rmtree(work, ignore_errors=True)
    return {"stages": stages.figures, "tables": tables, "peaks": peaks}


def file_figures(root: str, table: Any) -> Figures:
    """Number, bytes and rows of a table's files."""
    delta = ensure_table(root, table)
    files = table_files(delta)
    actions = delta.get_add_actions(flatten=True)
    rows = sum(count or 0 for count in actions.column("num_records").to_pylist())
    return {"files": len(files), "bytes": sum(f.size_bytes for f in files), "rows": rows}


def separately(subscriptions: int, minutes: int, triggers: Sequence[int]) -> Figures:
    """The same in a process of its own, whose memory is this shape's alone."""
    with tempfile.TemporaryDirectory(prefix="headgate-scale-") as folder:
        alone = [str(subscriptions), str(minutes), folder]
        arrive = [str(minutes) for minutes in triggers]
        done = subprocess.run(
            [sys.executable, "-m", "bench.scale", "--triggers", *arrive, "--alone", *alone],
            stdout=subprocess.PIPE,
            timeout=LIMIT_S,
            check=True,
            text=True,
        )
    return dict(json.loads(done.stdout.splitlines()[-1]))


def shape_table(subscriptions: int, minutes: int, found: Figures) -> Table:
    """The figures of one shape."""
    table = Table(f"{subscriptions:,} subscriptions x {minutes:,} minutes")
    for name, stage in found["stages"].items():
        table.add(name, stage_text(stage))
    for name, files in found["tables"].items():
        table.add(
            f"{name}, files",
            f"{files['files']:,} of {number(files['bytes'] / 1e6)} MB, {files['rows']:,} rows,"
            f" {number(files['bytes'] / max(1, files['rows']))} B/row",
        )
    table.add("driver's Java, live after each stage, at most", f"{heap_mib(found):.0f} MiB")
    for name, what in (
        ("python", "driver's Python"), ("executor", "largest executor's Java"),
        ("worker", "largest Python worker"),
    ):  # fmt: skip
        table.add(f"{what}, peak", f"{found['peaks'][name]:.0f} MiB")
    return table


def heap_mib(found: Figures) -> float:
    """The most that lived in the driver's heap after a stage."""
    return max(float(stage["heap_mib"]) for stage in found["stages"].values())


def growth_table(shapes: list[tuple[int, int]], found: list[Figures]) -> Table:
    """What the last shape takes, for each row, of what the first one takes."""
    (few, _), (many, _) = shapes[0], shapes[-1]
    table = Table(f"growth from {few:,} to {many:,} subscriptions, for each row of telemetry")
    first, last = found[0], found[-1]
    rows = [each["tables"][BRONZE_SAMPLES.name]["rows"] for each in (first, last)]
    names = [name for name in first["stages"] if not name.startswith("+")]
    for key, what in (("cpu_s", "CPU"), ("shuffled_bytes", "bytes shuffled")):
        for name in names:
            before, after = (
                each["stages"][name][key] / count
                for each, count in zip((first, last), rows, strict=True)
            )
            if before:
                table.add(f"{what}, {name}", f"{number(after / before)} times")
    work = [
        sum(each["stages"][name]["cpu_s"] for name in names) / count
        for each, count in zip((first, last), rows, strict=True)
    ]
    table.aim("CPU, all stages", work[1] / work[0], "times", WORK_GROWTH_MAX)
    table.aim("driver's Java, live", heap_mib(last) / heap_mib(first), "times", MEMORY_GROWTH_MAX)
    memory = last["peaks"]["python"] / first["peaks"]["python"]
    table.aim("driver's Python, peak", memory, "times", MEMORY_GROWTH_MAX)
    for (subscriptions, _), each in zip(shapes, found, strict=True):
        for name, cpu in trigger_cpu(each).items():
            table.add(f"{name} of {subscriptions:,} subscriptions arrive", f"CPU {number(cpu)} s")
    return table


def trigger_cpu(found: Figures) -> dict[str, float]:
    """CPU seconds of each trigger, by its text (``+4 min``)."""
    total: dict[str, float] = {}
    for name, stage in found["stages"].items():
        if name.startswith("+"):
            text = name.rpartition(" ")[0]
            total[text] = total.get(text, 0.0) + stage["cpu_s"]
    return total


def main() -> None:
    """Print a table for each shape, and one about growth."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=SCALE, help="of all subscriptions; 0.01")
    parser.add_argument(
        "--triggers", type=int, nargs="*", default=TRIGGERS, help="minutes that arrive; 1 4"
    )
    parser.add_argument(
        "--shapes", type=int, nargs="+", default=[*range(1, len(SHAPES) + 1)],
        choices=range(1, len(SHAPES) + 1), help="which shapes, by their number; all",
    )  # fmt: skip
    parser.add_argument("--json", type=Path, help="a file for all figures")
    parser.add_argument("--alone", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    root = str(Path(__file__).resolve().parents[1])
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    if options.alone:
        subscriptions, minutes, folder = options.alone
        print(json.dumps(run_shape(int(subscriptions), int(minutes), folder, options.triggers)))
        return
    chosen = [SHAPES[number - 1] for number in options.shapes]
    shapes = [(max(1, round(many * options.scale)), minutes) for many, minutes in chosen]
    found = []
    for shape in shapes:
        found.append(separately(*shape, options.triggers))
        shape_table(*shape, found[-1]).print()
        if options.json:
            options.json.write_text(json.dumps([shapes, found], indent=1))
    if len(shapes) > 1:
        growth_table(shapes, found).print()


if __name__ == "__main__":
    main()
