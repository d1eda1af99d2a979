"""Sends batches by OTLP over HTTP in protobuf, with OpenTelemetry's own exporter and data model.

The SDK's instruments are not used: one that is read by a callback keeps every set of attributes
that it ever saw, and counts them against a limit, after which new topics and consumers vanish in
one overflowing sum (docs/decisions/0009-opentelemetry.md). This is the only module that loads
OpenTelemetry's libraries; :mod:`headgate.telemetry.otel.bounded_session` is below them.
"""

from __future__ import annotations

import logging
import threading
from typing import Final

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Metric,
    MetricExportResult,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from headgate.base.clock import Clock
from headgate.base.units import INT64_MAX
from headgate.telemetry.otel.bounded_session import bounded_session
from headgate.telemetry.otel.instruments import BY_NAME, Instrument, Kind
from headgate.telemetry.otel.measurements import Batch, Measurement

SCOPE: Final = "org.apache.pulsar.broker"
"""Pulsar's name of it."""

SERVICE_NAME: Final = "pulsar-broker"

_EXPORTER_LOGGER: Final = logging.getLogger(OTLPMetricExporter.__module__)


class OtlpExporter:
    """An :class:`~headgate.telemetry.otel.export.Exporter` that sends by OTLP. Headers,
    certificates, compression and resource attributes are those of the environment."""

    def __init__(
        self, *, endpoint: str, timeout_s: float, cluster: str, version: str, clock: Clock
    ) -> None:
        """``endpoint`` is the whole address; ``timeout_s`` is for all tries of one batch."""
        self._target = "/" + endpoint.partition("://")[2].partition("/")[2]
        self._resource = resource(cluster, version)
        self._scope = InstrumentationScope(SCOPE)
        self._exporter = OTLPMetricExporter(
            endpoint=endpoint, timeout=timeout_s, session=bounded_session(clock)
        )

    def export(self, batch: Batch) -> str:
        reason = _Reason()
        _EXPORTER_LOGGER.addFilter(reason)
        try:
            result = self._exporter.export(self.metrics_data(batch))
        except Exception as error:  # of a library: it must not end the exports
            return self._shown(f"{type(error).__name__}: {error}")
        finally:
            _EXPORTER_LOGGER.removeFilter(reason)
        if result is MetricExportResult.SUCCESS:
            return ""
        return self._shown(reason.text) or "for an unknown reason"

    def _shown(self, reason: str) -> str:
        """A reason without the path and query of the endpoint, which may have a key."""
        return reason if self._target == "/" else reason.replace(self._target, "...")

    def close(self) -> None:
        self._exporter.shutdown()

    def metrics_data(self, batch: Batch) -> MetricsData:
        """The batch as the SDK hands it to exporters."""
        metrics = [_metric(BY_NAME[name], taken) for name, taken in batch.by_name.items()]
        scope = ScopeMetrics(scope=self._scope, metrics=metrics, schema_url="")
        return MetricsData([ResourceMetrics(self._resource, [scope], schema_url="")])


def resource(cluster: str, version: str) -> Resource:
    """The resource that sends; attributes of the environment win."""
    ours = {"service.name": SERVICE_NAME, "service.version": version, "pulsar.cluster": cluster}
    return Resource.create({**ours, **OTELResourceDetector().detect().attributes})


def _metric(instrument: Instrument, taken: list[Measurement]) -> Metric:
    points = [NumberDataPoint(m.attributes, m.since_ns, m.at_ns, _value(m)) for m in taken]
    data: Gauge | Sum
    if instrument.kind is Kind.GAUGE:
        data = Gauge(points)
    else:
        is_counter = instrument.kind is Kind.COUNTER
        data = Sum(points, AggregationTemporality.CUMULATIVE, is_monotonic=is_counter)
    return Metric(instrument.name, instrument.meaning, instrument.unit, data)


def _value(measurement: Measurement) -> int | float:
    """What OTLP can have. Clients may drive some counts beyond 63 bits; each request with such a
    one would fail, and all behind it."""
    value = measurement.value
    return min(value, INT64_MAX) if isinstance(value, int) else value


class _Reason(logging.Filter):
    """Keeps why an export failed, which the library only logs. The first record of a batch says
    most; none of them reaches the log."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""
        self._thread = threading.get_ident()
        """The exporting thread: other brokers of this process have others."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.thread != self._thread:
            return True
        self.text = self.text or record.getMessage()
        return False
