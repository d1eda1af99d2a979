"""Listens to the layers below and tells others: the Prometheus page, an OpenTelemetry collector
and the telemetry topic.

Nothing below knows this package; it reads their figures, watches the engine through
:class:`headgate.engine.ports.Observer` and publishes its records like any producer. ``series``
and ``prometheus`` make ``GET /metrics``, ``route`` serves it; ``instruments`` and ``measurements``
say what is exported, ``metric_export`` and ``otlp`` send it; ``subjects``, ``limiters``,
``samples`` and ``events`` turn state into rows of the telemetry record, ``publisher`` sends them.
Whatever walks all topics does so in short slices.
"""
