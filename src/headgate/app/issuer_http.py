"""Requests to OpenID Connect issuers over HTTP.

A request blocks, so it runs on a lane. It is bounded in bytes and in time, and follows no redirect.
The authorities are read for each request, so a changed file needs no restart.
"""

from __future__ import annotations

import http.client
import math
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from headgate.access.timed_answers import timed_answers
from headgate.base.errors import HeadgateError, InputError
from headgate.base.units import MS_PER_S
from headgate.policy.openid_settings import OpenIdSettings
from headgate.security.jwks import DOCUMENT_BYTES_MAX

_HEADERS: Final = {
    "Accept": "application/json",
    "Accept-Encoding": "identity",
    "Connection": "close",
    "User-Agent": "headgate",
}
_PART_BYTES: Final = 16_384


class FetchError(HeadgateError):
    """An issuer does not answer, or not in HTTP. The text has no secret."""


@dataclass(frozen=True, slots=True)
class FetchBounds:
    """The bounds of a request, by Pulsar's settings."""

    connect_timeout_s: float
    """``openIDHttpConnectionTimeoutMillis``"""
    read_timeout_s: float
    """``openIDHttpReadTimeoutMillis``: for one document, from the connection to its last byte."""
    trust_path: str
    """``openIDTokenIssuerTrustCertsFilePath``; empty for the system's authorities."""
    must_encrypt: bool
    """``openIDRequireIssuersUseHttps``"""

    @property
    def total_s(self) -> float:
        """The longest time of two documents, but for the look-ups of hosts' addresses."""
        return 2 * (self.connect_timeout_s + self.read_timeout_s)


def fetch_bounds(settings: OpenIdSettings) -> FetchBounds:
    """The bounds by the settings."""
    return FetchBounds(
        settings.openIDHttpConnectionTimeoutMillis / MS_PER_S,
        settings.openIDHttpReadTimeoutMillis / MS_PER_S,
        settings.openIDTokenIssuerTrustCertsFilePath,
        settings.openIDRequireIssuersUseHttps,
    )


def get_document(url: str, bounds: FetchBounds, context: ssl.SSLContext) -> bytes:
    """The document at ``url``. Blocks.

    Raises:
        FetchError: the host cannot be reached, or answers with another status than 200.
    """
    status, document = _asked(url, bounds, context, None, {})
    if status != http.HTTPStatus.OK:
        where = ": redirects are not followed" if 300 <= status < 400 else ""
        raise FetchError(f"{url} answers with status {status}{where}")
    return document


def post_form(
    url: str, bounds: FetchBounds, body: bytes, headers: Mapping[str, str]
) -> tuple[int, bytes]:
    """Status and document of the answer to a request with ``body``. Blocks.

    Raises:
        FetchError: the host cannot be reached, or does not answer in HTTP.
        InputError: the file with the authorities cannot be used.
    """
    return _asked(url, bounds, trust_context(bounds.trust_path), body, headers)


def trust_context(path: str) -> ssl.SSLContext:
    """TLS with verification of certificates and host names. Blocks.

    Raises:
        InputError: the file with the authorities cannot be used.
    """
    try:
        return ssl.create_default_context(cafile=path or None)
    except (OSError, ssl.SSLError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(
            f"openIDTokenIssuerTrustCertsFilePath={path} cannot be used: {reason}; a PEM file with "
            "certificates is needed"
        ) from None


def _asked(
    url: str,
    bounds: FetchBounds,
    context: ssl.SSLContext,
    body: bytes | None,
    headers: Mapping[str, str],
) -> tuple[int, bytes]:
    """One request; a POST if it has a body."""
    try:
        sock = _connected(url, bounds, context)
    except TimeoutError:
        raise FetchError(f"{url}: no connection in time") from None
    except (OSError, ValueError) as error:
        raise FetchError(f"{url}: {_cause(error)}") from None
    deadline_s = time.monotonic() + bounds.read_timeout_s
    # The socket's time-out is one for each read: an answer that drips would never end.
    watch = threading.Timer(bounds.read_timeout_s, _shut_down, (sock,))
    watch.daemon = True
    watch.start()
    try:
        if isinstance(sock, ssl.SSLSocket):
            sock.do_handshake()
        answer, problem = _answer(url, sock, body, headers), ""
    except FetchError as error:
        answer, problem = (0, b""), str(error)
    except OSError as error:
        answer, problem = (0, b""), f"{url}: {_cause(error)}"
    except (http.client.HTTPException, ValueError) as error:
        # Such errors repeat what the host sent: after a POST perhaps a secret that it was sent.
        cause = _cause(error) if body is None else f"no answer in HTTP ({type(error).__name__})"
        answer, problem = (0, b""), f"{url}: {cause}"
    finally:
        watch.cancel()
        sock.close()
    if time.monotonic() >= deadline_s:
        problem = f"{url} did not answer in time"
    if problem:
        raise FetchError(problem)
    return answer


def _connected(url: str, bounds: FetchBounds, context: ssl.SSLContext) -> socket.socket:
    """A connection to the host of ``url``, before any handshake."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    is_encrypted = parts.scheme == "https"
    port = parts.port or (http.client.HTTPS_PORT if is_encrypted else http.client.HTTP_PORT)
    sock = socket.create_connection((host, port), bounds.connect_timeout_s)
    sock.settimeout(bounds.read_timeout_s)
    if is_encrypted:
        return context.wrap_socket(sock, server_hostname=host, do_handshake_on_connect=False)
    return sock


def _answer(
    url: str, sock: socket.socket, content: bytes | None, headers: Mapping[str, str]
) -> tuple[int, bytes]:
    parts = urlsplit(url)
    is_encrypted = parts.scheme == "https"
    kind = http.client.HTTPSConnection if is_encrypted else http.client.HTTPConnection
    connection = kind(parts.hostname or "", parts.port)
    connection.response_class = timed_answers(lambda: math.inf)  # the watch ends it in time
    connection.sock = sock
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    method = "GET" if content is None else "POST"
    connection.request(method, path, content, {**_HEADERS, **headers})
    response = connection.getresponse()
    body = bytearray()
    while part := response.read(_PART_BYTES):
        body += part
        if len(body) > DOCUMENT_BYTES_MAX:
            raise FetchError(f"{url} answers with more than {DOCUMENT_BYTES_MAX:,} bytes")
    if response.length:
        raise FetchError(f"{url} ended its answer {response.length:,} bytes before the end")
    return response.status, bytes(body)


def _shut_down(sock: socket.socket) -> None:
    """End a connection from another thread: its reader sees the end at once."""
    try:
        # Not that of SSLSocket, which changes what the reader uses.
        socket.socket.shutdown(sock, socket.SHUT_RDWR)
    except OSError:
        return  # it has ended already


def _cause(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted: {error.verify_message}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
