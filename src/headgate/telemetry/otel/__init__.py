"""Metrics by OpenTelemetry.

``instruments`` declares every name, ``readings`` reads the values, ``measurements`` takes them in
batches, ``export`` sends these at each interval through ``otlp``.
"""
