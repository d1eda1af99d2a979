"""Fetches an issuer's keys over HTTP: the configuration, then the set of keys that it names.

A fetch blocks, so it runs on a lane. It is bounded in bytes and in time, follows no redirect and
sends no secret. The authorities are read for each fetch, so a changed file needs no restart.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from headgate.base.errors import HeadgateError, InputError
from headgate.security.errors import InvalidKeyError
from headgate.security.jwks import DOCUMENT_BYTES_MAX, configuration_url, keys_of, keys_url
from headgate.security.key_cache import Keys

_HEADERS: Final = {
    "Accept": "application/json",
    "Accept-Encoding": "identity",
    "Connection": "close",
    "User-Agent": "headgate",
}
_PART_BYTES: Final = 16_384


class FetchError(HeadgateError):
    """An issuer's keys could not be fetched."""


@dataclass(frozen=True, slots=True)
class FetchBounds:
    """The bounds of a fetch, by Pulsar's settings."""

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
        """The longest time of both documents, but for the look-ups of hosts' addresses."""
        return 2 * (self.connect_timeout_s + self.read_timeout_s)


Fetch = Callable[[str], Keys]
"""Fetches the keys of an issuer. Blocks. Raises :class:`FetchError`."""


def fetch_keys(issuer: str, bounds: FetchBounds) -> Keys:
    """The keys of ``issuer``. Blocks.

    Raises:
        FetchError: the issuer cannot be reached, or answers something else.
    """
    try:
        context = trust_context(bounds.trust_path)
        url = configuration_url(issuer)
        found = keys_url(_get(url, bounds, context), issuer, must_encrypt=bounds.must_encrypt)
        url = found
        return keys_of(_get(url, bounds, context))
    except InvalidKeyError as error:
        raise FetchError(f"{url}: {error}") from None
    except InputError as error:
        raise FetchError(str(error)) from None


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


def _get(url: str, bounds: FetchBounds, context: ssl.SSLContext) -> bytes:
    """One document. Raises :class:`FetchError`."""
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
        document, problem = _document(url, sock), ""
    except FetchError as error:
        document, problem = b"", str(error)
    except (OSError, http.client.HTTPException, ValueError) as error:
        document, problem = b"", f"{url}: {_cause(error)}"
    finally:
        watch.cancel()
        sock.close()
    if time.monotonic() >= deadline_s:
        problem = f"{url} did not answer in time"
    if problem:
        raise FetchError(problem)
    return document


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


def _document(url: str, sock: socket.socket) -> bytes:
    parts = urlsplit(url)
    is_encrypted = parts.scheme == "https"
    kind = http.client.HTTPSConnection if is_encrypted else http.client.HTTPConnection
    connection = kind(parts.hostname or "", parts.port)
    connection.sock = sock
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    connection.request("GET", path, headers=_HEADERS)
    response = connection.getresponse()
    if response.status != http.HTTPStatus.OK:
        where = ": redirects are not followed" if 300 <= response.status < 400 else ""
        raise FetchError(f"{url} answers with status {response.status}{where}")
    body = bytearray()
    while part := response.read(_PART_BYTES):
        body += part
        if len(body) > DOCUMENT_BYTES_MAX:
            raise FetchError(f"{url} answers with more than {DOCUMENT_BYTES_MAX:,} bytes")
    if response.length:
        raise FetchError(f"{url} ended its answer {response.length:,} bytes before the end")
    return bytes(body)


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
