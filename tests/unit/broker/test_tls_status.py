"""The state of TLS before anything has happened."""

from __future__ import annotations

from headgate.broker.tls_status import HandshakeEnd, TlsStatus


def test_without_tls_there_is_nothing() -> None:
    status = TlsStatus()
    assert (status.expires_at_s, status.problem, status.half_open) == (None, "", 0)
    assert [status.handshakes[end] for end in HandshakeEnd] == [0] * 5
    assert f"{HandshakeEnd.DONE}" == "done"
