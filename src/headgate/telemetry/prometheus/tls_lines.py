"""Samples of TLS on ``GET /metrics``."""

from __future__ import annotations

from headgate.broker.tls_status import HandshakeEnd, TlsStatus
from headgate.telemetry.prometheus.series.definition import LinesOf, Series
from headgate.telemetry.prometheus.series.tls import (
    TLS_EXPIRES_SERIES,
    TLS_HALF_OPEN_SERIES,
    TLS_HANDSHAKES_SERIES,
    TLS_RELOAD_FAILURES_SERIES,
    TLS_RELOADS_SERIES,
)


class TlsLines:
    """Adds the samples of TLS to one page; none without TLS."""

    def __init__(self, status: TlsStatus, lines_of: LinesOf) -> None:
        self._status = status
        self._lines_of = lines_of

    def add_broker(self, labels: str) -> None:
        """Add all; ``labels`` name the cluster and are still open."""
        status = self._status
        if status.expires_at_s is None:
            return
        self._add(TLS_EXPIRES_SERIES, labels, status.expires_at_s)
        self._add(TLS_RELOADS_SERIES, labels, status.reloads)
        self._add(TLS_RELOAD_FAILURES_SERIES, labels, status.reload_failures)
        self._add(TLS_HALF_OPEN_SERIES, labels, status.half_open)
        for end in HandshakeEnd:
            self._add(TLS_HANDSHAKES_SERIES, f'{labels},result="{end}"', status.handshakes[end])

    def _add(self, series: Series, labels: str, value: int) -> None:
        self._lines_of(series).append(f"{series.name}{labels}}} {value}")
