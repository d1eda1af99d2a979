"""Starts the export of metrics; only then OpenTelemetry's libraries are loaded."""

from __future__ import annotations

import logging
from urllib.parse import urlsplit

from headgate import __version__
from headgate.app.export_settings import METRICS_PATH, ExportSettings
from headgate.broker.service import Broker
from headgate.storage.lanes import ThreadLane
from headgate.telemetry.otel.export import MetricExport

logger = logging.getLogger("headgate.app")


def start_export(broker: Broker, settings: ExportSettings) -> MetricExport:
    """Export what the running broker measures; stop it before the broker is closed."""
    # Loading takes 0.1 s and 10 MiB, so only an export pays for it.
    from headgate.telemetry.otel.otlp import OtlpExporter

    exporter = OtlpExporter(
        endpoint=settings.endpoint,
        timeout_s=settings.timeout_s,
        cluster=broker.settings.clusterName,
        version=__version__,
        clock=broker.clock,
    )
    lane = ThreadLane(broker.loop, "headgate-metrics")
    export = MetricExport(broker, exporter, lane, interval_ms=settings.interval_ms)
    export.start()
    shown = urlsplit(settings.endpoint)
    logger.info(
        "metrics are exported to %s://%s%s every %d ms",
        shown.scheme,
        shown.netloc.rpartition("@")[2],  # without a password
        # Another one may be a key.
        shown.path if shown.path == METRICS_PATH else "",
        settings.interval_ms,
    )
    return export
