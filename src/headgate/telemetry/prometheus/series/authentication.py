"""The series of authentication."""

from __future__ import annotations

from typing import Final

from headgate.telemetry.prometheus.series.definition import BROKER_LABELS, Series

AUTHENTICATION_SERIES: Final = Series(
    "headgate_authentication_attempts_total",
    "counter",
    (*BROKER_LABELS, "method", "result"),
    "attempts",
    "CONNECTs, refreshes and HTTP requests that were authenticated since the start, by the method"
    " of their credentials (none: without any, or of a method without a provider) and result:"
    " success, failure, or unchecked, because too many passwords wait for their check or failed.",
)
"""On the page if ``authenticationEnabled``."""
