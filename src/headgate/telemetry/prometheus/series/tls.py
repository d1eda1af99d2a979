"""The series of TLS."""

from __future__ import annotations

from typing import Final

from headgate.telemetry.prometheus.series.definition import BROKER_LABELS, Series, own_broker_series

TLS_EXPIRES_SERIES: Final = own_broker_series(
    "tls_certificate_expires_timestamp_seconds",
    "gauge",
    "s",
    "End of the broker's certificate, in seconds since 1970: minus time() is what is left. Absent"
    " without TLS.",
)
TLS_RELOADS_SERIES: Final = own_broker_series(
    "tls_reloads_total",
    "counter",
    "reloads",
    "Times since the start that changed files of TLS came into force.",
)
TLS_RELOAD_FAILURES_SERIES: Final = own_broker_series(
    "tls_reload_failures_total",
    "counter",
    "looks",
    "Looks since the start at changed files of TLS that cannot be used, while those of before stay"
    " in force: above 0 and rising until they are mended.",
)
TLS_HALF_OPEN_SERIES: Final = own_broker_series(
    "tls_half_open_connections",
    "gauge",
    "connections",
    "Connections whose handshake of TLS is not done.",
)
TLS_HANDSHAKES_SERIES: Final = Series(
    "headgate_tls_handshakes_total",
    "counter",
    (*BROKER_LABELS, "result"),
    "handshakes",
    "Handshakes of TLS since the start by their end. done; timeout: the client took too long;"
    " foreign: it does not speak TLS; failed: it refused the certificate, sent none or a wrong one,"
    " or left; refused: there were too many connections.",
)

TLS_SERIES: Final = (
    TLS_EXPIRES_SERIES,
    TLS_RELOADS_SERIES,
    TLS_RELOAD_FAILURES_SERIES,
    TLS_HALF_OPEN_SERIES,
    TLS_HANDSHAKES_SERIES,
)
