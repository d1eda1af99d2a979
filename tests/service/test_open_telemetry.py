"""The export of metrics with a broker in a process of its own and a collector in this one."""

from __future__ import annotations

import http.server
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pulsar
import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.common.v1.common_pb2 import KeyValue

from headgate import __version__
from headgate.telemetry.otel.instruments import BY_NAME, Kind
from tests.service.process import BrokerProcess, StartFailedError

Make = Callable[..., BrokerProcess]
TOPIC = "persistent://public/default/exported"
STOP_S_MAX = 8
"""A stop takes well under a second; a request that hangs, ten."""


class Collector:
    """Takes what is exported and keeps the latest value of everything."""

    def __init__(self) -> None:
        self.status = 200
        self.requests: list[dict[str, str]] = []
        self.resource: dict[str, Any] = {}
        self.points: dict[str, dict[frozenset[tuple[str, Any]], float]] = {}
        self._changed = threading.Condition()
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.take(self.path, dict(self.headers), body)
                self.send_response(collector.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.address = f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def take(self, path: str, headers: dict[str, str], body: bytes) -> None:
        request = ExportMetricsServiceRequest.FromString(body)
        with self._changed:
            self.requests.append({"path": path, **headers})
            for of_resource in request.resource_metrics:
                self.resource = _named(of_resource.resource.attributes)
                for scope in of_resource.scope_metrics:
                    assert scope.scope.name == "org.apache.pulsar.broker"
                    for metric in scope.metrics:
                        self._take_metric(metric)
            self._changed.notify_all()

    def _take_metric(self, metric: Any) -> None:
        instrument = BY_NAME[metric.name]
        assert (metric.unit, metric.description) == (instrument.unit, instrument.meaning)
        data = getattr(metric, metric.WhichOneof("data"))
        if metric.HasField("gauge"):
            assert instrument.kind is Kind.GAUGE
        else:
            assert data.is_monotonic == (instrument.kind is Kind.COUNTER)
            assert data.aggregation_temporality == 2  # cumulative
        for point in data.data_points:
            assert 0 < point.start_time_unix_nano <= point.time_unix_nano or metric.HasField(
                "gauge"
            )
            key = frozenset(_named(point.attributes).items())
            value = getattr(point, point.WhichOneof("value"))
            self.points.setdefault(metric.name, {})[key] = value

    def value(self, name: str, **attributes: Any) -> float | None:
        """The latest of the one point that has these attributes (``_`` for a dot)."""
        wanted = {key.replace("_", "."): value for key, value in attributes.items()}
        found = [
            value
            for key, value in self.points.get(name, {}).items()
            if wanted.items() <= dict(key).items()
        ]
        return found[0] if len(found) == 1 else None

    def await_(self, condition: Callable[[], bool]) -> None:
        """Return once it holds."""
        with self._changed:
            assert self._changed.wait_for(condition, 30), sorted(self.points)


def _named(attributes: list[KeyValue]) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    yield made
    made.close()


@pytest.fixture
def exporting(monkeypatch: pytest.MonkeyPatch, collector: Collector) -> Collector:
    """Brokers of this test export to the collector, twice a second."""
    monkeypatch.setenv("OTEL_SDK_DISABLED", "false")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.address)
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "500")
    return collector


def _stopped_in_s(broker: BrokerProcess) -> float:
    begun_s = time.monotonic()
    assert broker.terminate() == 0
    return time.monotonic() - begun_s


def test_what_real_clients_do_is_exported(
    make_broker: Make, exporting: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20secret")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test")
    broker = make_broker().start()
    client = pulsar.Client(
        broker.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
    )
    consumer = client.subscribe(TOPIC, "s", pulsar.ConsumerType.Shared, consumer_name="c")
    producer = client.create_producer(TOPIC, producer_name="p")
    for number in range(10):
        producer.send(b"%03d" % number)
    for _ in range(4):
        consumer.acknowledge(consumer.receive(10_000))
    topic = {
        "pulsar_domain": "persistent",
        "pulsar_tenant": "public",
        "pulsar_namespace": "public/default",
        "pulsar_topic": TOPIC,
    }
    of_consumer = {
        "pulsar_subscription_name": "s",
        "pulsar_subscription_type": "Shared",
        "pulsar_consumer_name": "c",
    }
    value = exporting.value
    exporting.await_(lambda: value("pulsar.broker.consumer.message.ack.count", **of_consumer) == 4)
    assert value("pulsar.broker.topic.message.incoming.count", **topic) == 10
    assert value("pulsar.broker.topic.message.outgoing.count", **topic) == 10
    assert value("pulsar.broker.topic.subscription.count", **topic) == 1
    assert value("pulsar.broker.topic.storage.backlog.quota.limit.size", **topic) == -1
    assert value("pulsar.broker.producer.message.incoming.count", pulsar_producer_name="p") == 10
    assert value("pulsar.broker.consumer.message.unack.count", **of_consumer) == 6
    assert value("pulsar.broker.connection.count", pulsar_connection_status="active") >= 1
    assert value("headgate.subscription.state.seconds", state="awaiting_ack", **topic) is not None
    client.close()
    exporting.await_(lambda: value("pulsar.broker.topic.producer.count", **topic) == 0)
    assert exporting.resource["service.name"] == "pulsar-broker"
    assert exporting.resource["service.version"] == __version__
    assert exporting.resource["pulsar.cluster"] == "standalone"
    assert exporting.resource["deployment.environment"] == "test"
    assert {request["path"] for request in exporting.requests} == {"/v1/metrics"}
    assert exporting.requests[0]["authorization"] == "Bearer secret"
    assert _stopped_in_s(broker) < STOP_S_MAX
    log = broker.log()
    assert f"metrics are exported to {exporting.address}/v1/metrics every 500 ms" in log
    assert " WARNING " not in log
    assert "secret" not in log


def test_without_the_variable_nothing_is_exported_or_even_loaded(
    make_broker: Make, exporting: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPROFILEIMPORTTIME", "1")
    broker = make_broker("on").start()
    assert broker.terminate() == 0
    assert "opentelemetry.sdk.metrics" in _imported(broker)
    count = len(exporting.requests)
    assert count > 0  # what a stop exports
    monkeypatch.delenv("OTEL_SDK_DISABLED")
    broker = make_broker("off").start()
    assert broker.terminate() == 0
    imported = _imported(broker)
    assert "headgate.telemetry.records.publisher" in imported
    assert not [name for name in imported if name.split(".")[0] in ("opentelemetry", "requests")]
    assert len(exporting.requests) == count


def test_a_collector_that_is_not_there_disturbs_nobody(
    make_broker: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_SDK_DISABLED", "false")
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "100")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1500")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{port}")
    broker = make_broker().start()
    _wait_for(lambda: "the export of metrics fails" in broker.log())
    assert broker.get("/admin/v2/brokers/health") == (200, b"ok")
    assert _stopped_in_s(broker) < STOP_S_MAX
    warnings = [line for line in broker.log().splitlines() if " WARNING " in line]
    assert len(warnings) == 1
    assert "Connection refused" in warnings[0]
    assert " ERROR " not in broker.log()


def test_a_collector_that_never_answers_does_not_delay_the_stop(
    make_broker: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_SDK_DISABLED", "false")
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "100")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(30)
        monkeypatch.setenv(
            "OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{silent.getsockname()[1]}"
        )
        broker = make_broker().start()
        with silent.accept()[0]:
            assert broker.get("/admin/v2/brokers/health") == (200, b"ok")
            assert _stopped_in_s(broker) < STOP_S_MAX


def test_a_refusal_is_reported_once_and_its_end_too(
    make_broker: Make, exporting: Collector
) -> None:
    exporting.status = 401
    broker = make_broker().start()
    _wait_for(lambda: "code: 401, reason: Unauthorized" in broker.log())
    exporting.status = 200
    _wait_for(lambda: "metrics are exported again" in broker.log())
    assert broker.terminate() == 0
    assert broker.log().count("the export of metrics fails") == 1


def test_a_variable_that_cannot_be_followed_stops_the_start(
    make_broker: Make, exporting: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    with pytest.raises(StartFailedError) as caught:
        make_broker().start()
    assert caught.value.status == 2
    assert (
        "Error: OTEL_EXPORTER_OTLP_PROTOCOL='grpc' is not allowed: http/protobuf"
        in caught.value.stderr.splitlines()
    )


def _imported(broker: BrokerProcess) -> set[str]:
    """What it loaded, as PYTHONPROFILEIMPORTTIME has it logged."""
    lines = broker.log().splitlines()
    return {line.split("|")[2].strip() for line in lines if line.startswith("import time:")}


def _wait_for(condition: Callable[[], bool]) -> None:
    end_s = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end_s
        time.sleep(0.05)
