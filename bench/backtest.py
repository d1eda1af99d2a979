"""How fast policies are replayed: the compiled kernel by itself, and the whole job in Spark.

The kernel runs on one core, each kind of policy by itself, over a day's samples of topics whose
demand and drain swing and sometimes break down. A *state step* is one topic under one point over
one sample; with a look a second each holds ten looks of the controller. The job reads bronze with
a row for each topic and sample, in a session of two cores that has started.
"""

from __future__ import annotations

import argparse
import io
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench.processes import check_memory, watched_memory
from bench.report import Table, number
from headgate.flow.adaptive.cycle import AdaptiveSettings, Law
from headgate.flow.quota.backlog_quota import Quota, QuotaPolicy, QuotaType
from headgate.pipeline.backtest.grid import Grid
from headgate.pipeline.backtest.job import run_backtest
from headgate.pipeline.backtest.kernel import replay_points
from headgate.pipeline.backtest.kernel_points import point_rows
from headgate.pipeline.backtest.load import Load
from headgate.pipeline.backtest.policy import Point, Policy, Rates
from headgate.pipeline.backtest.replay import Resolution
from headgate.pipeline.kernels.array_types import Doubles
from headgate.pipeline.progress import Progress
from headgate.pipeline.session import create_session
from headgate.pipeline.spark_options import SparkOptions
from headgate.pipeline.store.delta_log import commit_append
from headgate.pipeline.store.parquet_files import write_tables
from headgate.pipeline.tables.arrow_types import conform, table_arrow_schema
from headgate.pipeline.tables.bronze import BRONZE_SAMPLES
from headgate.pipeline.tables.columns import HOUR_NS

STEPS_PER_S_MIN = 5e7
JOB_S_MAX = 8.0
TOPICS, POINTS, SAMPLES = 1_000, 64, 1_440
STEP_NS = 10_000_000_000
T0_NS = 1_763_719_200_000_000_000
QUOTA_BYTES = 60_000_000

Kinds = dict[str, list[Policy]]


def kinds(points: int) -> Kinds:
    """So many points of each kind."""
    ways = list(QuotaPolicy)
    return {
        "publish limits": [Policy(Rates(None, int(x))) for x in np.linspace(5e5, 3e6, points)],
        "size quotas": [
            Policy(size_quota=Quota(QuotaType.SIZE, int(x), ways[i % 3], "grid"))
            for i, x in enumerate(np.linspace(1e7, 1e8, points))
        ],
        "law pressure": [
            Policy(adaptive=AdaptiveSettings(backlog_low=float(x)))
            for x in np.linspace(0.3, 0.8, points)
        ],
        "law drain": [
            Policy(adaptive=AdaptiveSettings(law=Law.DRAIN, drain_set_point=float(x)))
            for x in np.linspace(0.3, 0.9, points)
        ],
    }


def rates(seed: int, samples: int) -> tuple[Doubles, Doubles]:
    """What a topic's producers want and its consumers can, bytes a second."""
    random, at = np.random.default_rng(seed), np.arange(samples)
    bursts = 1 + 3 * (random.random(samples) < 0.02)
    demand = 1e6 * (1 + 0.5 * np.sin(at / 200 + seed)) * bursts * random.uniform(0.8, 1.2, samples)
    drain = 1.3e6 * random.uniform(0.7, 1.3, samples)
    broken = int(random.integers(0, max(1, samples - 60)))
    drain[broken : broken + 40] *= 0.3
    return demand, drain


def day(seed: int, samples: int) -> Load:
    """A topic's load, with a size quota that holds."""
    steps = np.zeros((samples, 9))
    steps[:, 0], steps[:, 2] = rates(seed, samples)
    steps[:, 1], steps[:, 3], steps[:, 4], steps[:, 5] = 1_000, QUOTA_BYTES, 1, -1
    steps[:, 7:] = np.inf
    return Load(STEP_NS, steps)


def tabulate_kernel(topics: int) -> Table:
    """State steps a second of each kind of policy."""
    table = Table(f"The compiled replay on one core, {topics} topics x 16 points x {SAMPLES}")
    loads = [day(seed, SAMPLES) for seed in range(topics)]
    for name, policies in kinds(16).items():
        for resolution in Resolution:
            if "law" not in name and resolution is Resolution.CYCLE:
                continue
            points = point_rows(policies, STEP_NS, resolution)
            replay_points(loads[0], points)
            began_s = time.process_time()
            for load in loads:
                replay_points(load, points)
            steps = topics * len(policies) * SAMPLES
            speed = steps / (time.process_time() - began_s)
            looks = "a look a second" if resolution is Resolution.CYCLE else "a look a sample"
            text = f"{name}, {looks}" if "law" in name else name
            if resolution is Resolution.CYCLE:
                # Each sample is as many steps as the controller looks.
                table.check_least(text, speed / 1e5, "M looks/s", STEPS_PER_S_MIN / 1e6)
            else:
                table.check_least(text, speed / 1e6, "M state steps/s", STEPS_PER_S_MIN / 1e6)
    return table


def write_bronze(root: str, topics: int, samples: int) -> None:
    """A day of topic samples, hour by hour."""
    schema = table_arrow_schema(BRONZE_SAMPLES)
    published, done = np.zeros((topics, samples + 1)), np.zeros((topics, samples + 1))
    for topic in range(topics):
        demand, drain = rates(topic, samples)
        published[topic, 1:] = np.cumsum(demand * 10)
        for n in range(samples):
            done[topic, n + 1] = min(published[topic, n + 1], done[topic, n] + 10 * drain[n])
    names = pa.array([f"persistent://public/default/topic-{n}" for n in range(topics)])
    for first in range(0, samples, 360):
        parts = [
            _window(schema, n, names, published[:, n + 1], done[:, n + 1])
            for n in range(first, min(first + 360, samples))
        ]
        files = write_tables(root, "0", [(BRONZE_SAMPLES.name, pa.concat_tables(parts))])
        commit_append(root, BRONZE_SAMPLES, files, None)


def _window(
    schema: pa.Schema, n: int, names: pa.Array, published: Doubles, done: Doubles
) -> pa.Table:
    count = len(names)
    end_ns = T0_NS + (n + 1) * STEP_NS
    hour = (end_ns - 1) // HOUR_NS
    backlog = (published - done).astype(np.int64)
    same = {
        "hour": hour % 24,
        "kind": "topic",
        "source": "bench",
        "cluster": "bench",
        "broker": "bench:6650",
        "boot_id": "bench",
        "seq": n,
        "window_start_ns": end_ns - STEP_NS,
        "window_end_ns": end_ns,
        "clock_step": False,
        "incarnation": 1,
        "covered_from_ns": end_ns - STEP_NS,
        "covered_to_ns": end_ns,
        "counting_since_ns": T0_NS,
        "gone": False,
        "quota_size_limit_bytes": QUOTA_BYTES,
        "quota_size_policy": QuotaPolicy.HOLD.value,
        "quota_size_source": "namespace policy public/default",
        "parked_topic_rate_ns": 0,
        "parked_topic_rate_bytes": 0,
    }
    columns = {
        name: pa.repeat(pa.scalar(value, schema.field(name).type), count)
        for name, value in same.items()
    }
    columns["date"] = pa.repeat(pa.scalar(hour // 24, pa.int32()), count).cast(pa.date32())
    columns["topic"] = names
    columns["row"] = pa.array(np.arange(count, dtype=np.int32))
    columns["msgs_in"] = pa.array((published / 1_000).astype(np.int64))
    columns["bytes_in"] = pa.array(published.astype(np.int64))
    columns["backlog_bytes"] = pa.array(backlog)
    columns["oldest_age_ns"] = pa.array(np.where(backlog > 0, 5_000_000_000, 0))
    return conform(columns, schema, count)


def tabulate_job(topics: int, samples: int) -> Table:
    """The whole job, with both resolutions, and what its workers take."""
    table = Table(f"The job in Spark local[2]: {topics:,} topics x {POINTS} points x {samples:,}")
    policies = [policy for some in kinds(POINTS // 4).values() for policy in some]
    points = tuple(Point(number, "", policy) for number, policy in enumerate(policies))
    with tempfile.TemporaryDirectory() as root:
        began_s = time.monotonic()
        write_bronze(root, topics, samples)
        table.add("writing bronze", f"{number(time.monotonic() - began_s)} s")
        spark = create_session(
            "bench backtest", options=SparkOptions(cores=2), log_path=Path(root, "_spark.log")
        )
        runs = (Resolution.SAMPLE, Resolution.SAMPLE, Resolution.CYCLE)
        with watched_memory() as peaks:
            for turn, resolution in enumerate(runs):
                grid = Grid(points, resolution)
                began_s = time.monotonic()
                run_backtest(spark, root, grid, None, None, "bench", Progress(io.StringIO()))
                took_s = time.monotonic() - began_s
                looks = "a look a second" if resolution is Resolution.CYCLE else "a look a sample"
                speed = f"{number(topics * len(points) * samples / took_s / 1e6)} M state steps/s"
                if turn == 0:
                    # Java compiles its code, workers start and import theirs.
                    table.add(f"{looks}, the session's first", f"{number(took_s)} s  ({speed})")
                else:
                    table.check(looks, took_s, "s", JOB_S_MAX, note=speed)
        check_memory(table, peaks)
        spark.stop()
    return table


def main() -> None:
    """Run it, smaller with ``--topics`` and ``--samples``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--topics", type=int, default=TOPICS)
    parser.add_argument("--samples", type=int, default=SAMPLES)
    parser.add_argument("--kernel-topics", type=int, default=20)
    options = parser.parse_args()
    tabulate_kernel(options.kernel_topics).print()
    tabulate_job(options.topics, options.samples).print()


if __name__ == "__main__":
    main()
