"""From a cluster that is looked at to rows of attribution: agent, files, ``pipeline attribute``."""

from __future__ import annotations

import io
import json
from pathlib import Path
from random import Random

import pytest

from headgate.agent.cluster_history import ClusterHistory
from headgate.agent.cluster_watch import ClusterWatch
from headgate.agent.look_plan import LookPlan
from headgate.agent.record_files import RecordFiles
from headgate.agent.records import Instants, RecordWindows
from headgate.agent.request_budget import RequestBudget
from headgate.agent.scout import Scout
from headgate.agent.shared_history import SharedHistory
from headgate.base.units import NS_PER_S
from headgate.fs import OsFs
from headgate.pipeline import jobs
from headgate.pipeline.options import AttributeOptions, SourceOptions
from headgate.testing.fake_cluster import FakeCluster, FakeSubscription, FakeTopic, InlineExecutor
from tests.spark.telemetry_topic import rows_of
from tests.unit.agent.clusters import Setting

NAMESPACE = "persistent://acme/orders"
CASES = {
    "alone": ("NO_CONSUMER", FakeSubscription(consumers=0)),
    "slow": ("CONSUMER", FakeSubscription(acked_per_s=40.0, permits=0, unacked=100)),
    "stuck": ("BROKER", FakeSubscription(is_stuck=True)),
}
MINUTES = 12


def watched(folder: Path) -> FakeCluster:
    """A cluster, watched for some minutes of virtual time by an agent that was killed once."""
    cluster = FakeCluster(brokers=["b1:8080", "b2:8080"])
    cluster.add(
        FakeTopic(f"{NAMESPACE}/{name}", published_per_s=100.0, subscriptions=[subscription])
        for name, (_, subscription) in CASES.items()
    )
    setting = Setting(cluster)
    for boot in ("one", "two"):
        files = RecordFiles(OsFs(), str(folder))
        clock = setting.clock
        history, budget = SharedHistory(ClusterHistory("prod")), RequestBudget()
        scout = Scout(
            setting.client, history, LookPlan(), budget, InlineExecutor(), clock, Random(1)
        )
        start = Instants(clock.wall_ns(), clock.monotonic_ns())
        windows = RecordWindows("agent:prod", "prod", boot, start)
        watch = ClusterWatch("prod", scout, history, windows, clock, budget=budget, files=files)
        end_ns = clock.monotonic_ns() + MINUTES * 60 * NS_PER_S
        while clock.monotonic_ns() < end_ns:
            rest_s = watch.step()
            clock.advance(round(min(1.0, max(rest_s, 0.01)) * NS_PER_S))
        assert watch.counts().failures == 0
        files.close()  # the lock goes with a process that is killed; no last window is written
    return cluster


@pytest.mark.usefixtures("spark")
def test_a_cluster_is_judged_from_the_agents_files(tmp_path: Path) -> None:
    watched(tmp_path / "records" / "prod")
    out, answer, progress = tmp_path / "tables", io.StringIO(), io.StringIO()
    source = SourceOptions(str(out), files=str(tmp_path / "records"))
    jobs.run_attribute(AttributeOptions(source, format="json"), answer, progress)
    rows = {row["topic"].rpartition("/")[2]: row for row in json.loads(answer.getvalue())}
    assert {name: row["verdict"] for name, row in rows.items()} == {
        name: verdict for name, (verdict, _) in CASES.items()
    }
    assert {row["evidence"] for row in rows.values()} == {"inferred"}
    # A minute is lost at each start, when counting begins.
    assert all(row["seconds"] > 2 * (MINUTES - 2) * 60 for row in rows.values())
    intervals = rows_of(out, "intervals").to_pylist()
    minutes = [row for row in intervals if row["topic"].endswith("/alone")]
    of_topic = [row for row in minutes if row["kind"] == "topic"]
    published = sum(row["msgs_in"] for row in of_topic)
    seconds = sum(row["covered_ns"] for row in of_topic) / NS_PER_S
    assert published == pytest.approx(100 * seconds, rel=0.02)
    assert {row["broker"] for row in minutes} <= {"b1:8080", "b2:8080"}
    assert "1 is not met" not in progress.getvalue()
    assert "are not met" not in progress.getvalue()
