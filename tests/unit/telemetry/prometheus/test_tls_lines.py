"""Samples of TLS: none without it."""

from __future__ import annotations

from headgate.broker.tls_status import HandshakeEnd, TlsStatus
from headgate.telemetry.prometheus.page import Page
from headgate.telemetry.prometheus.series.tls import TLS_SERIES
from headgate.telemetry.prometheus.tls_lines import TlsLines


def lines_of(status: TlsStatus) -> list[str]:
    page = Page()
    TlsLines(status, page.lines_of).add_broker('{cluster="c"')
    return [line for series in TLS_SERIES for line in page.lines_of(series)]


def test_a_certificate_and_handshakes() -> None:
    assert lines_of(TlsStatus()) == []
    status = TlsStatus(expires_at_s=1_800_000_000, reloads=2, reload_failures=3, half_open=4)
    status.handshakes[HandshakeEnd.DONE] = 5
    assert lines_of(status) == [
        'headgate_tls_certificate_expires_timestamp_seconds{cluster="c"} 1800000000',
        'headgate_tls_reloads_total{cluster="c"} 2',
        'headgate_tls_reload_failures_total{cluster="c"} 3',
        'headgate_tls_half_open_connections{cluster="c"} 4',
        'headgate_tls_handshakes_total{cluster="c",result="done"} 5',
        'headgate_tls_handshakes_total{cluster="c",result="timeout"} 0',
        'headgate_tls_handshakes_total{cluster="c",result="foreign"} 0',
        'headgate_tls_handshakes_total{cluster="c",result="failed"} 0',
        'headgate_tls_handshakes_total{cluster="c",result="refused"} 0',
    ]
