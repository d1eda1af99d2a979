"""Monitoring of the broker: the Prometheus page, OpenTelemetry metrics, the telemetry topic.

It only listens: no package below imports it. ``prometheus`` makes and serves ``GET /metrics``,
``otel`` exports metrics to a collector, ``records`` follows the engine as its
:class:`headgate.engine.observer.Observer` and publishes the telemetry record like any producer. All
walk the topics in short slices.
"""
