"""The HTTP session of the export: what a collector answers is bounded in bytes and time.

The library under OpenTelemetry's exporter reads an answer to its end, unpacks it and keeps it, and
its time-out is one for each read. A collector, or who stands between, could fill the broker's
memory with one answer, or hold the export with one that never ends. What it answers may repeat what
it was sent, so no text of it is handed on: the reason of a failure is logged.
"""

from __future__ import annotations

import http.client
import io
import ssl
from contextlib import suppress
from typing import Any, Final

import requests
from requests.adapters import HTTPAdapter
from urllib3.exceptions import HTTPError

from headgate.access.timed_answers import causes_of, timed_pools
from headgate.base.clock import Clock
from headgate.base.units import NS_PER_S

ANSWER_BYTES_MAX: Final = 64 * 1024
"""What is read of an answer. The exporter looks at its status alone; the rest is dropped."""

_PART_BYTES: Final = 16 * 1024


class _BoundedAdapter(HTTPAdapter):
    """Reads the begin of an answer, as it was sent. One thread at a time sends."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._end_ns = 0
        super().__init__()

    def init_poolmanager(self, *given: Any, **options: Any) -> None:
        super().init_poolmanager(*given, **options)
        self._time_answers(self.poolmanager)

    def proxy_manager_for(self, proxy: Any, **options: Any) -> Any:
        is_new = proxy not in self.proxy_manager
        manager = super().proxy_manager_for(proxy, **options)
        if is_new:
            self._time_answers(manager)
        return manager

    def _time_answers(self, pools: Any) -> None:
        pools.pool_classes_by_scheme = timed_pools(pools.pool_classes_by_scheme, self._left_s)

    def _left_s(self) -> float:
        return (self._end_ns - self._clock.monotonic_ns()) / NS_PER_S

    def send(self, *given: Any, **options: Any) -> requests.Response:
        timeout_s: float = options.get("timeout") or 0.0
        self._end_ns = end_ns = self._clock.monotonic_ns() + round(timeout_s * NS_PER_S)
        try:
            response = super().send(*given, **{**options, "stream": True})
        except requests.ConnectionError as error:
            raise type(error)(_why(error)) from None
        if 300 <= response.status_code < 400:
            response.close()
            # The exporter would take it for accepted.
            raise requests.RequestException(
                f"status {response.status_code}: redirects are not followed"
            )
        response.reason = http.client.responses.get(response.status_code, "")
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


def _why(error: BaseException) -> str:
    """Why a request got no answer, without a text of the collector and without its address."""
    for cause in causes_of(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"its certificate is not accepted: {cause.verify_message}"
        if isinstance(cause, http.client.HTTPException):
            return f"no answer in HTTP ({type(cause).__name__})"
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
    return type(error).__name__


def bounded_session(clock: Clock) -> requests.Session:
    """A session whose answers have at most :data:`ANSWER_BYTES_MAX` and end in time."""
    session = requests.Session()
    session.headers["Accept-Encoding"] = "identity"
    for scheme in ("https://", "http://"):
        session.mount(scheme, _BoundedAdapter(clock))
    return session
