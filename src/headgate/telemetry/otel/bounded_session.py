"""The HTTP session of the export: what a collector answers is bounded in bytes and time.

The library under OpenTelemetry's exporter reads an answer to its end, unpacks it and keeps it, and
its time-out is one for each read. A collector, or who stands between, could fill the broker's
memory with one answer.
"""

from __future__ import annotations

import io
from contextlib import suppress
from typing import Any, Final

import requests
from requests.adapters import HTTPAdapter
from urllib3.exceptions import HTTPError

from headgate.base.clock import Clock
from headgate.base.units import NS_PER_S

ANSWER_BYTES_MAX: Final = 64 * 1024
"""What is read of an answer. The exporter looks at its status alone; the rest is dropped."""

_PART_BYTES: Final = 16 * 1024


class _BoundedAdapter(HTTPAdapter):
    """Reads the begin of an answer, as it was sent."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    def send(self, *given: Any, **options: Any) -> requests.Response:
        timeout_s: float = options.get("timeout") or 0.0
        end_ns = self._clock.monotonic_ns() + round(timeout_s * NS_PER_S)
        response = super().send(*given, **{**options, "stream": True})
        raw, body, is_whole = response.raw, bytearray(), False
        try:
            # The status is known: what goes wrong behind it is the end of the answer.
            with suppress(HTTPError):
                while not is_whole and len(body) < ANSWER_BYTES_MAX:
                    if self._clock.monotonic_ns() > end_ns:
                        break
                    part = raw.read1(_PART_BYTES, decode_content=False)
                    body += part
                    is_whole = not part
        finally:
            if is_whole:
                raw.release_conn()
            else:
                raw.close()
        response.raw = io.BytesIO(body)
        return response


def bounded_session(clock: Clock) -> requests.Session:
    """A session whose answers have at most :data:`ANSWER_BYTES_MAX` and end in time."""
    session = requests.Session()
    session.headers["Accept-Encoding"] = "identity"
    for scheme in ("https://", "http://"):
        session.mount(scheme, _BoundedAdapter(clock))
    return session
