"""``headgate pipeline stream`` is killed at several moments of a batch.

``./dev soak kills`` does it twenty times.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from headgate.pipeline import jobs
from headgate.pipeline.derived.catalogue import DERIVED
from headgate.pipeline.options import SourceOptions
from headgate.pipeline.store.folder import checkpoint_path
from headgate.pipeline.store.table_store import LOG
from headgate.pipeline.tables.bronze import BRONZE_SAMPLES
from headgate.pipeline.tables.catalogue import TABLES
from headgate.pipeline.tables.intervals import INTERVALS
from tests.spark.conftest import KILLS, Cluster
from tests.spark.telemetry_topic import rows_of
from tests.unit.pipeline.play import SITUATIONS, T0, Broker, S
from tests.unit.pipeline.quota_play import QuotaBroker

LIMIT_S = 600.0
POLL_S = 0.02
_QUICK = "--conf spark.sql.codegen.wholeStage=false --conf spark.sql.codegen.factoryMode=NO_CODEGEN"


def wait_until(is_so: Callable[[], bool], what: str) -> None:
    """Look again and again, for :data:`LIMIT_S` at most."""
    deadline_s = time.monotonic() + LIMIT_S
    while not is_so():
        assert time.monotonic() < deadline_s, f"{what}: not after {LIMIT_S} s"
        time.sleep(POLL_S)


def parents() -> dict[int, int]:
    """The parent of every process."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                # The name before may hold anything, also spaces and brackets.
                state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
            except OSError:
                continue
            if state != "Z":
                found[int(entry.name)] = int(parent)
    return found


def descendants(pid: int) -> set[int]:
    """A process's children, their children and so on."""
    family, of = {pid}, parents()
    while more := {child for child, parent in of.items() if parent in family} - family:
        family |= more
    return family - {pid}


class Stream:
    """A folder that ``headgate pipeline stream`` fills from a topic."""

    def __init__(self, cluster: Cluster, out: Path) -> None:
        self.topic = cluster.new_topic()
        self.source = SourceOptions(
            str(out), (cluster.broker.service_url,), (cluster.broker.admin_url,), self.topic
        )
        self.out = out
        self.log_path = out.with_suffix(".log")

    def start(self) -> subprocess.Popen[bytes]:
        """Run the command in a process of its own."""
        command = [
            sys.executable, "-m", "headgate.cli", "pipeline", "stream", "--out", str(self.out),
            "--topic", self.topic, "--trigger", "0.2",
            "--broker-url", self.source.broker_urls[0], "--admin-url", self.source.web_urls[0],
        ]  # fmt: skip
        with self.log_path.open("ab") as log:
            # As in the lane's session: a stream that is killed in its first batch compiles no plan.
            environment = os.environ | {"PYSPARK_SUBMIT_ARGS": f"{_QUICK} pyspark-shell"}
            return subprocess.Popen(command, stdout=log, stderr=log, env=environment)

    def planned(self) -> int:
        """Batches that Spark has planned."""
        return len(list(Path(checkpoint_path(self.source), "offsets").glob("[0-9]*")))

    def commits(self, table: str) -> int:
        """Versions after the one that made a table. To open it at each look would take the CPU
        from the stream."""
        return max(0, len(list(Path(self.out, table, LOG).glob("*.json"))) - 1)

    def moments(self) -> list[Callable[[], int]]:
        """What counts up in the course of a batch, in this order."""
        return [
            lambda: self.commits(BRONZE_SAMPLES.name),
            self.planned,
            lambda: self.commits(INTERVALS.name),
        ]

    def run_until_killed(self, count: Callable[[], int]) -> None:
        """Kill it when something has counted up, and see all its processes end."""
        before = count()
        process = self.start()
        try:
            wait_until(
                lambda: count() > before or process.poll() is not None, "a moment of a batch"
            )
            family = descendants(process.pid)
            assert process.poll() is None, self.log_path.read_text()
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
        assert family
        wait_until(lambda: not family & parents().keys(), f"the end of {family}")


def tables_of(source: SourceOptions) -> dict[str, pa.Table]:
    """All tables, after what the topic holds now was read."""
    with open(os.devnull, "w") as nowhere:
        jobs.run_once(source, nowhere)
    return {name: rows_of(Path(source.out), name) for name in TABLES}


def test_killed_streams_neither_lose_nor_duplicate_rows(
    spark: SparkSession, cluster: Cluster, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    kills = pytestconfig.getoption("--kills", KILLS)
    stream = Stream(cluster, tmp_path / "tables")
    start_ns = T0 + 3_570 * S
    player = Broker(start_ns=start_ns, situations=SITUATIONS[:3])
    # Whose quota evicts from its second part on.
    held = QuotaBroker(start_ns=start_ns, source="b2", boot="boot-2")
    for i in range(kills):
        part = [m for _ in range(2) for m in (*player.window(10), *held.window(10))]
        cluster.publish(stream.topic, [*part, b"not a record"])
        moments = stream.moments()
        stream.run_until_killed(moments[i % len(moments)])
    undisturbed = SourceOptions(
        str(tmp_path / "undisturbed"),
        stream.source.broker_urls,
        stream.source.web_urls,
        stream.topic,
    )
    killed = tables_of(stream.source)
    assert killed["bronze_quarantine"].num_rows == kills
    assert all(killed[table.name].num_rows for table in DERIVED)
    assert killed == tables_of(undisturbed)
