"""Requests as a collector reads them, made by OpenTelemetry's own encoder."""

from __future__ import annotations

import logging
from itertools import count
from types import SimpleNamespace

import pytest
from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    MetricExporter,
    MetricExportResult,
    MetricsData,
)

from headgate.base.clock import SystemClock
from headgate.base.units import INT64_MAX
from headgate.engine.types import SubscriptionType
from headgate.telemetry.otel.measurements import Batch, Measurement
from headgate.telemetry.otel.otlp import SCOPE, OtlpExporter, resource
from headgate.testing import World
from tests.unit.telemetry.otel.test_measurements import everything
from tests.unit.telemetry.support import NAME, publish

BROKEN = "http://[collector"
"""An address that nothing is sent to."""


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OTEL_RESOURCE_ATTRIBUTES", "OTEL_SERVICE_NAME"):
        monkeypatch.delenv(name, raising=False)


def exporter(endpoint: str = BROKEN) -> OtlpExporter:
    return OtlpExporter(
        endpoint=endpoint, timeout_s=1, cluster="east", version="1.2.3", clock=SystemClock()
    )


def batch_of(**taken: list[Measurement]) -> Batch:
    batch = Batch()
    for name, values in taken.items():
        batch.by_name["pulsar.broker." + name.replace("_", ".")] += values
    return batch


def test_kinds_values_and_times() -> None:
    values = [Measurement({"pulsar.topic": NAME, "pulsar.partition.index": 7}, 100, 200, 5)]
    batch = batch_of(
        topic_message_incoming_count=values,
        topic_producer_count=values,
        topic_storage_backlog_age=values,
    )
    request = encode_metrics(exporter().metrics_data(batch))
    (of_resource,) = request.resource_metrics
    (scope,) = of_resource.scope_metrics
    assert scope.scope.name == SCOPE
    counter, up_down, gauge = scope.metrics
    assert (counter.name, counter.unit) == (
        "pulsar.broker.topic.message.incoming.count",
        "{message}",
    )
    assert counter.sum.is_monotonic
    assert not up_down.sum.is_monotonic
    for metric in (counter, up_down):
        assert metric.sum.aggregation_temporality == AggregationTemporality.CUMULATIVE
        (point,) = metric.sum.data_points
        assert (point.as_int, point.start_time_unix_nano, point.time_unix_nano) == (5, 100, 200)
        attributes = {each.key: each.value for each in point.attributes}
        assert attributes["pulsar.topic"].string_value == NAME
        assert attributes["pulsar.partition.index"].int_value == 7
    (point,) = gauge.gauge.data_points
    assert (point.as_int, point.time_unix_nano) == (5, 200)


def test_everything_that_is_measured_can_be_sent() -> None:
    async def scenario(world: World) -> None:
        broker = await world.start()
        await publish(world, 5)
        taken = await everything(broker)
        batch = Batch()
        batch.by_name.update(taken)
        request = encode_metrics(exporter().metrics_data(batch))
        metrics = request.resource_metrics[0].scope_metrics[0].metrics
        assert {metric.name for metric in metrics} == set(taken)

    with World() as world:
        world.run(scenario(world))


def test_a_count_beyond_63_bits_keeps_no_other_from_being_sent() -> None:
    values = [Measurement({}, 100, 200, 1 << 70), Measurement({}, 100, 200, 5)]
    request = encode_metrics(exporter().metrics_data(batch_of(topic_message_incoming_count=values)))
    (metric,) = request.resource_metrics[0].scope_metrics[0].metrics
    assert [point.as_int for point in metric.sum.data_points] == [INT64_MAX, 5]


def test_ids_of_clients_of_any_number_are_sent_and_not_logged(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(world: World) -> None:
        broker = await world.start()
        client = await world.connect()
        monkeypatch.setattr(client, "new_id", count((1 << 64) - 1, -1).__next__)
        await client.subscribe(NAME, "s", kind=SubscriptionType.SHARED)
        await client.producer(NAME)
        batch = Batch()
        batch.by_name.update(await everything(broker))
        request = encode_metrics(exporter().metrics_data(batch))
        found = {
            attribute.value.int_value
            for metric in request.resource_metrics[0].scope_metrics[0].metrics
            for point in metric.sum.data_points
            for attribute in point.attributes
            if attribute.key in ("pulsar.consumer.id", "pulsar.producer.id")
        }
        assert len(found) == 2
        assert max(found) < 0

    with World() as world:
        world.run(scenario(world))
    # The library logs a traceback for each attribute that it leaves out, of each value.
    assert not [record for record in caplog.records if record.name.startswith("opentelemetry")]


def test_the_environment_wins_over_pulsars_resource(monkeypatch: pytest.MonkeyPatch) -> None:
    found = resource("east", "1.2.3").attributes
    ours = {"service.name": "pulsar-broker", "service.version": "1.2.3", "pulsar.cluster": "east"}
    assert ours.items() <= found.items()
    assert found["telemetry.sdk.name"] == "opentelemetry"
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "pulsar.cluster=west,zone=a")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "orders")
    found = resource("east", "1.2.3").attributes
    assert (found["service.name"], found["pulsar.cluster"], found["zone"]) == (
        "orders",
        "west",
        "a",
    )


def test_a_failure_is_returned_and_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    failing = exporter()
    reason = failing.export(batch_of())
    assert "not a valid host" in reason
    assert not caplog.records
    failing.close()
    assert "shutdown" in failing.export(batch_of())
    assert not caplog.records


def test_a_reason_has_no_key_of_the_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    failing = exporter("http://user:password@collector/receiver/secret?key=hidden")
    logger = logging.getLogger("opentelemetry.exporter.otlp.proto.http.metric_exporter")
    text = "Max retries exceeded with url: /receiver/secret?key=hidden (refused)"

    def refused(_data: MetricsData) -> MetricExportResult:
        logger.warning(text)
        return MetricExportResult.FAILURE

    def broken(_data: MetricsData) -> MetricExportResult:
        raise RuntimeError(text)

    for export, name in ((refused, ""), (broken, "RuntimeError: ")):
        monkeypatch.setattr(failing, "_exporter", SimpleNamespace(export=export))
        reason = failing.export(batch_of())
        assert reason == f"{name}Max retries exceeded with url: ... (refused)"


def test_an_error_of_the_library_is_a_reason_too(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(MetricExporter):
        def export(self, metrics_data: MetricsData, *_: object, **__: object) -> MetricExportResult:
            raise RuntimeError("it broke")

        def force_flush(self, timeout_millis: float = 0) -> bool:
            return True

        def shutdown(self, timeout_millis: float = 0, **_: object) -> None:
            pass

    failing = exporter()
    monkeypatch.setattr(failing, "_exporter", Broken())
    assert failing.export(batch_of()) == "RuntimeError: it broke"


def test_records_of_other_threads_pass(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("opentelemetry.exporter.otlp.proto.http.metric_exporter")
    exporter().export(batch_of())
    logger.warning("of somebody else")
    assert [record.getMessage() for record in caplog.records] == ["of somebody else"]
