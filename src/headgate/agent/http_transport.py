"""Requests over real sockets: connections are kept, bodies compressed and bounded."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Final

import urllib3
from urllib3.exceptions import (
    HTTPError,
    LocationParseError,
    NewConnectionError,
    ReadTimeoutError,
    SSLError,
)
from urllib3.exceptions import (
    TimeoutError as RequestTimeoutError,
)

from headgate.access.admin_api import AdminUrlError, UnreachableError, split_url, too_long
from headgate.access.authentication import certificate_paths
from headgate.access.client_config import ClientConfig
from headgate.access.timed_answers import LateAnswerError, causes_of, timed_pools
from headgate.access.tls import client_context, tls_failure
from headgate.agent.transport import RawReply
from headgate.base.clock import Clock
from headgate.base.errors import HeadgateError
from headgate.base.units import MIB, NS_PER_S

CONNECT_S: Final = 3.0
"""Longest wait for a connection: a broker that is gone must not hold up the others."""
SILENT_S: Final = 20.0
"""Longest time in which nothing of an answer comes, whatever the whole of it may take: surveys are
made one at a time, and each broker that says nothing holds up those of all others."""

_TRUST: Final = "--tls-trust-cert-path"
_CONNECTIONS_KEPT: Final = 16
"""To one host: the admin URL of a single broker gets the questions about policies as well."""
_BROKERS_MAX: Final = 64
_CHUNK_BYTES: Final = MIB


class HttpTransport:
    """The :class:`headgate.agent.transport.Transport` of sockets."""

    def __init__(self, config: ClientConfig, clock: Clock) -> None:
        """``config`` has the certificates.

        Raises:
            InputError: a file of certificates cannot be used.
        """
        context = None
        if split_url(config.admin_url).scheme == "https":
            context = client_context(
                config.trust_path,
                _TRUST,
                certificate=certificate_paths(config),
                allow_insecure=config.allow_insecure,
                verify_hostname=config.verify_hostname,
            )
        self._pools = urllib3.PoolManager(
            num_pools=_BROKERS_MAX,
            maxsize=_CONNECTIONS_KEPT,
            retries=False,
            ssl_context=context,
            assert_hostname=None if config.verify_hostname else False,
        )
        self._pools.pool_classes_by_scheme = timed_pools(
            self._pools.pool_classes_by_scheme, self._left_s
        )
        self._clock = clock
        self._of_thread = threading.local()
        """``end_ns``: until when the answer that a thread reads may take."""

    def get(
        self, url: str, headers: Mapping[str, str], timeout_s: float, bytes_max: int
    ) -> RawReply:
        self._of_thread.end_ns = end_ns = self._clock.monotonic_ns() + round(timeout_s * NS_PER_S)
        silent_s = min(SILENT_S, timeout_s)
        server = origin(url)
        try:
            response = self._pools.request(
                "GET",
                url,
                headers={"Accept-Encoding": "gzip", "Accept": "*/*", **headers},
                timeout=urllib3.Timeout(connect=min(CONNECT_S, timeout_s), read=silent_s),
                redirect=False,
                preload_content=False,
            )
        except (HTTPError, OSError, UnicodeError) as error:
            if any(isinstance(cause, LateAnswerError) for cause in causes_of(error)):
                raise UnreachableError(_unfinished(server, timeout_s)) from error
            raise _failure(server, error, silent_s) from error
        try:
            body = self._body(response, server, end_ns, timeout_s, bytes_max)
        except (HTTPError, OSError) as error:
            response.close()
            if self._left_s() <= 0:
                raise UnreachableError(_unfinished(server, timeout_s)) from error
            raise _failure(server, error, silent_s) from error
        except BaseException:
            response.close()
            raise
        response.release_conn()
        names = {name.lower(): value for name, value in response.headers.items()}
        return RawReply(response.status, names, body)

    def close(self) -> None:
        self._pools.clear()

    def _left_s(self) -> float:
        left_ns: int = self._of_thread.end_ns - self._clock.monotonic_ns()
        return left_ns / NS_PER_S

    def _body(
        self,
        response: urllib3.BaseHTTPResponse,
        server: str,
        end_ns: int,
        timeout_s: float,
        bytes_max: int,
    ) -> bytes | bytearray:
        body = bytearray()
        try:
            # What has arrived, and no whole chunk: a server that sends byte by byte is given up.
            while chunk := response.read1(_CHUNK_BYTES, decode_content=True):
                body += chunk
                if len(body) > bytes_max:
                    raise UnreachableError(too_long(server, bytes_max))
                if self._clock.monotonic_ns() > end_ns:
                    raise UnreachableError(_unfinished(server, timeout_s))
        except BaseException:
            body.clear()  # whoever keeps the error keeps this frame
            raise
        return body  # no copy: a survey may have 150 MB


def origin(url: str) -> str:
    """Scheme, host and port of a URL: ``http://broker-1:8080``.

    Raises:
        AdminUrlError: it is no ``http`` or ``https`` URL with a host.
    """
    where = split_url(url)
    port = where.port or (443 if where.scheme == "https" else 80)
    host = where.hostname or ""
    return f"{where.scheme}://{f'[{host}]' if ':' in host else host}:{port}"


def _unfinished(server: str, timeout_s: float) -> str:
    return f"{server} did not finish its answer within {timeout_s:g} s"


def _failure(server: str, error: Exception, silent_s: float) -> HeadgateError:
    """One sentence on a request that got no answer; ``silent_s`` is how long it was waited for."""
    if isinstance(error, UnicodeError | LocationParseError):
        return AdminUrlError(f"{server!r} is no URL of a server")
    for cause in causes_of(error):
        if failure := tls_failure(cause, _TRUST):
            return UnreachableError(f"{server}: {failure}")
        if isinstance(cause, ConnectionRefusedError):
            problem = "refuses the connection: is the broker running there?"
            return UnreachableError(f"{server} {problem}")
    if isinstance(error, NewConnectionError):
        why = next(
            (c.strerror for c in causes_of(error) if isinstance(c, OSError) if c.strerror), ""
        )
        return UnreachableError(f"{server} cannot be reached: {why or 'no connection'}")
    if isinstance(error, ReadTimeoutError | RequestTimeoutError):
        return UnreachableError(f"{server} did not answer within {silent_s:g} s")
    if isinstance(error, SSLError):
        return UnreachableError(f"{server}: no TLS connection")
    return UnreachableError(f"{server} does not speak HTTP, or closed the connection")
