"""The pipeline over a real topic: published records, ``format("pulsar")``, judgements."""

from __future__ import annotations

import io
import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pulsar
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable

from headgate.pipeline import jobs
from headgate.pipeline.failures import PipelineError
from headgate.pipeline.options import AttributeOptions, SourceOptions
from headgate.pipeline.store.folder import checkpoint_path
from headgate.pipeline.streaming import query
from headgate.pipeline.tables.attribution import ATTRIBUTION
from headgate.pipeline.tables.intervals import INTERVALS
from tests.service.clients import QUIET, free_ports
from tests.service.process import BrokerProcess
from tests.spark.telemetry_topic import computing
from tests.unit.pipeline.play import SITUATIONS, T0, Broker, S, play

if TYPE_CHECKING:
    from tests.spark.conftest import Cluster


@pytest.mark.usefixtures("spark")
def test_attribute_reads_each_message_once(cluster: Cluster, tmp_path: Path) -> None:
    topic = cluster.new_topic()
    cluster.publish(topic, play(50))
    source = SourceOptions(
        str(tmp_path), (cluster.broker.service_url,), (cluster.broker.admin_url,), topic
    )
    seconds = []
    for more in ([], Broker(start_ns=T0 + 50 * S, boot="boot-2").window(10)):
        if more:
            cluster.publish(topic, more)
        out, err = io.StringIO(), io.StringIO()
        judged = jobs.run_attribute(AttributeOptions(source, format="json"), out, err)
        assert len(judged) == len(SITUATIONS)
        rows = json.loads(out.getvalue())
        wanted = {(s.topic, s.subscription): s.verdict for s in SITUATIONS}
        assert {(row["topic"], row["subscription"]): row["verdict"] for row in rows} == wanted
        seconds.append({row["seconds"] for row in rows})
        assert f"{50 + len(more)} messages" in err.getvalue()
    assert seconds == [{50.0}, {60.0}]


@pytest.mark.usefixtures("spark")
def test_a_long_first_read_is_several_batches_and_one_refresh(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = cluster.new_topic()
    messages = play(60)
    cluster.publish(topic, messages)
    source = SourceOptions(
        str(tmp_path), (cluster.broker.service_url,), (cluster.broker.admin_url,), topic
    )
    monkeypatch.setattr(query, "BATCH_BYTES_MAX", sum(map(len, messages)) // 4)
    err = io.StringIO()
    with computing(INTERVALS):
        jobs.run_once(source, err)
    assert "60 messages" in err.getvalue()
    batches = sorted(int(path.name) for path in Path(checkpoint_path(source), "commits").glob("?"))
    assert 4 <= len(batches) <= 8
    # Made, filled by each batch; and made, computed once.
    assert DeltaTable(tmp_path / "bronze_samples").version() == len(batches)
    assert DeltaTable(tmp_path / "intervals").version() == 1
    rows = DeltaTable(tmp_path / "bronze_samples").to_pyarrow_table(columns=["kind", "seq"])
    received = rows.filter(pc.equal(rows["kind"], "batch"))["seq"].to_pylist()
    assert sorted(received) == sorted(set(received))
    assert len(received) == 60


@pytest.mark.usefixtures("spark")
def test_lost_telemetry_is_printed_or_ends_the_job(cluster: Cluster, tmp_path: Path) -> None:
    topic, messages = cluster.new_topic(), play(50)
    cluster.publish(topic, messages[:20])
    source = SourceOptions(
        str(tmp_path), (cluster.broker.service_url,), (cluster.broker.admin_url,), topic
    )
    with computing(INTERVALS):
        jobs.run_once(source, io.StringIO())
    cluster.admin("DELETE", topic, "?force=true")
    cluster.publish(topic, [b"no telemetry", *messages[35:]])
    with pytest.raises(PipelineError, match="Without --fail-on-data-loss the job goes on"):
        jobs.run_once(replace(source, fail_on_data_loss=True), io.StringIO())
    err = io.StringIO()
    with computing(INTERVALS):
        jobs.run_once(source, err)
    assert (
        "Telemetry of b1 from 2025-11-21 10:00:20 UTC to 2025-11-21 10:00:35 UTC is missing: 15 "
        "messages expired before the pipeline read them.\n"
    ) in err.getvalue()
    assert "1 message in quarantine, because this version cannot read them" in err.getvalue()


@pytest.mark.usefixtures("spark")
def test_a_broker_with_a_new_data_directory_is_read_as_well(tmp_path: Path) -> None:
    """Its message ids begin anew, behind the checkpoint."""
    ports = free_ports(2)
    words = ["--broker-port", str(ports[0]), "--web-port", str(ports[1])]
    later = Broker(start_ns=T0 + 600 * S, boot="boot-2")
    said = []
    for name, messages in (
        ("old", play(40)),
        ("new", [m for _ in range(5) for m in later.window()]),
    ):
        (tmp_path / name).mkdir()
        process = BrokerProcess(tmp_path / name, words).start()
        try:
            topic = "persistent://public/default/telemetry"
            client = pulsar.Client(process.service_url, logger=QUIET)
            producer = client.create_producer(topic)
            for message in messages:
                producer.send(message)
            client.close()
            urls = (process.service_url,), (process.admin_url,)
            err = io.StringIO()
            with computing(INTERVALS, ATTRIBUTION):
                jobs.run_once(SourceOptions(str(tmp_path / "tables"), *urls, topic), err)
            said.append(err.getvalue())
        finally:
            process.close()
    samples = DeltaTable(tmp_path / "tables" / "bronze_samples").to_pyarrow_table()
    batches = samples.filter(pc.equal(samples["kind"], "batch")).group_by("boot_id")
    counts = batches.aggregate([([], "count_all")]).to_pylist()
    assert {row["boot_id"]: row["count_all"] for row in counts} == {"boot-1": 40, "boot-2": 5}
    judged = DeltaTable(tmp_path / "tables" / "attribution").to_pyarrow_table(columns=["to_ns"])
    assert pc.max(judged["to_ns"]).as_py() == T0 + 605 * S
    assert "no telemetry of b1" not in said[0]
    assert (
        "There is no telemetry of b1 from 2025-11-21 10:00:40 UTC to 2025-11-21 10:10:00 UTC"
    ) in said[1]


class Acknowledging:
    """A consumer that acknowledges at once, and tells when it has done so often enough."""

    def __init__(self, count: int) -> None:
        self.done = threading.Event()
        self._left = count

    def listen(self, consumer: pulsar.Consumer, message: pulsar.Message) -> None:
        consumer.acknowledge(message)
        self._left -= 1
        if self._left == 0:
            self.done.set()


@pytest.mark.usefixtures("spark")
def test_a_broker_s_own_telemetry_names_the_limit(tmp_path: Path) -> None:
    """The whole way with nothing played: real clients, a limit, the broker's records, Spark."""
    folder = tmp_path / "broker"
    folder.mkdir()
    process = BrokerProcess(folder, ["--set", "headgateTelemetryIntervalMs=1000"]).start()
    try:
        name = "persistent://public/default/held"
        path = "/admin/v2/persistent/public/default/held"
        assert process.request("PUT", path)[0] == 204
        limit = b'{"dispatchThrottlingRateInMsg":10,"ratePeriodInSecond":1}'
        assert process.request("POST", f"{path}/subscriptionDispatchRate", limit)[0] == 204
        client = pulsar.Client(
            process.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
        )
        held = Acknowledging(count=30)
        client.subscribe(name, "billing", pulsar.ConsumerType.Shared, message_listener=held.listen)
        producer = client.create_producer(name, max_pending_messages=10_000)
        # Enough for minutes: the limit holds them however long Spark takes to start and read.
        for _ in range(5_000):
            producer.send_async(b"x", None)
        producer.flush()
        assert held.done.wait(60)
        source = SourceOptions(
            str(tmp_path / "tables"), (process.service_url,), (process.admin_url,)
        )
        out, err = io.StringIO(), io.StringIO()
        jobs.run_attribute(AttributeOptions(source, format="json"), out, err)
        client.close()
    finally:
        process.close()
    (row,) = json.loads(out.getvalue())
    assert (row["topic"], row["subscription"]) == (name, "billing")
    assert (row["verdict"], row["dimension"]) == ("THROTTLED_SUBSCRIPTION", "messages")
    assert "the subscription limit of 10 msg/s (topic policy)" in row["sentence"]
