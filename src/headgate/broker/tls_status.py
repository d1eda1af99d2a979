"""What a broker reports of TLS: its certificate, its handshakes, files that it cannot use."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum


class HandshakeEnd(StrEnum):
    """How a handshake ended: the label ``result`` on /metrics."""

    DONE = "done"
    TIMEOUT = "timeout"
    """The client took too long."""
    FOREIGN = "foreign"
    """The client does not speak TLS."""
    FAILED = "failed"
    """The client refused the certificate, sent none or a wrong one, or left."""
    REFUSED = "refused"
    """There are too many connections."""


@dataclass(slots=True)
class TlsStatus:
    """The state of TLS in one broker. Nothing of it changes without TLS."""

    expires_at_s: int | None = None
    """Seconds since 1970 until which the certificate in force is valid; None without TLS."""
    problem: str = ""
    """Why the newest files are not in force, or that the certificate ends soon; empty if neither.
    """
    reloads: int = 0
    """Times that changed files came into force."""
    reload_failures: int = 0
    """Looks at changed files that cannot be used."""
    handshakes: Counter[HandshakeEnd] = field(default_factory=Counter)
    half_open: int = 0
    """Connections whose handshake is not done."""
