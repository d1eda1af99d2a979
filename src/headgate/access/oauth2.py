"""OAuth 2.0's client credentials flow: a token of the issuer for the client's id and secret.

As in Pulsar's ``AuthenticationOAuth2``: the issuer's ``/.well-known/openid-configuration`` names
the token endpoint, and a file has the id and the secret. Both are only sent over TLS, or to this
machine. No redirect is followed.
"""

from __future__ import annotations

import http.client
import json
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from urllib.parse import quote_plus, urlencode, urlsplit

from headgate.access.tls import client_context, tls_failure
from headgate.base.errors import HeadgateError, InputError
from headgate.base.texts import printable
from headgate.base.web_hosts import names_user

ISSUER_TIMEOUT_S: Final = 10.0
ANSWER_BYTES_MAX: Final = 1 << 20
LIFE_UNKNOWN_S: Final = 60.0
"""How long a token is used if the issuer does not say when it lapses."""
LIFE_MAX_S: Final = 10 * 365 * 86_400.0
"""A longer life is taken for a mistake. JSON may have numbers of hundreds of digits."""
LIFE_USED: Final = 0.9
"""The part of its life after which a token is replaced: a request must not carry one that lapses
on its way."""
REST_S: Final = 30.0
"""How long an issuer that gave no new token is not asked again while the present one is valid: it
may take seconds to fail, and each request of an agent would wait for that."""

VISIBLE: Final = re.compile(r"[!-~]+")
"""ASCII without spaces: what a header may have."""

_DISCOVERY: Final = "/.well-known/openid-configuration"
_FORM: Final = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


class TokenUnavailableError(HeadgateError):
    """The issuer gives no token: it does not answer, or refuses. No text has a secret."""


@dataclass(frozen=True, slots=True)
class FlowOptions:
    """Which issuer, and for what."""

    issuer_url: str
    audience: str = ""
    scope: str = ""
    trust_path: str = ""
    """PEM file of the authorities that the issuer's certificate may have; the public ones if
    empty."""


class JsonReply(NamedTuple):
    """An answer of the issuer: its status, and its JSON object, empty if it is none."""

    status: int
    document: Mapping[str, Any]


Exchange = Callable[[str, str, str], JsonReply]
"""``(url, form, trust_path)``: POST of a form, or GET if it is empty. Raises
:class:`TokenUnavailableError`."""


class ClientCredentialsFlow:
    """Gives tokens; one is used until it nearly lapses."""

    def __init__(
        self,
        options: FlowOptions,
        read_key: Callable[[], str],
        exchange: Exchange,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """``read_key`` gives the text of the key file, which is read for each new token.

        Raises:
            InputError: the issuer is no ``https`` URL.
        """
        _check_private(options.issuer_url, "issuerUrl")
        self.options = options
        self._read_key = read_key
        self._exchange = exchange
        self._now_s = now_s
        self._token = ""
        self._renew_s = self._lapse_s = self._rest_s = 0.0

    def token(self) -> str:
        """A token that is valid now.

        Raises:
            InputError: the key file cannot be read, or is none.
            TokenUnavailableError: the issuer gives none.
        """
        now_s = self._now_s()
        is_valid = bool(self._token) and now_s < self._lapse_s
        if is_valid and now_s < max(self._renew_s, self._rest_s):
            return self._token
        try:
            self._fetch(now_s)
        except TokenUnavailableError:
            self._rest_s = self._now_s() + REST_S
            if not is_valid:
                raise
        return self._token

    def secrets(self) -> list[str]:
        """The texts that no output may contain, as far as they are known."""
        return [self._token] if self._token else []

    def _fetch(self, now_s: float) -> None:
        client_id, client_secret = _key_of(self._read_key())
        form = {
            "grant_type": "client_credentials",
            "client_id": client_id,
            "client_secret": client_secret,
            "audience": self.options.audience,
            "scope": self.options.scope,
        }
        url = self._token_endpoint()
        reply = self._exchange(
            url, urlencode({name: text for name, text in form.items() if text}),
            self.options.trust_path,
        )  # fmt: skip
        token = reply.document.get("access_token")
        is_token = isinstance(token, str) and VISIBLE.fullmatch(token) is not None
        if reply.status != http.client.OK or not is_token:
            # error_description is free text of the issuer, which could repeat what was sent.
            why = str(reply.document.get("error", "no access_token"))
            if client_secret in why or quote_plus(client_secret) in why:
                why = "no access_token"
            raise TokenUnavailableError(
                f"{url} gives no token (status {reply.status}: {printable(why[:100])})"
            )
        life_s = _life_s(reply.document.get("expires_in"))
        self._token = str(token)
        self._renew_s, self._lapse_s = now_s + life_s * LIFE_USED, now_s + life_s

    def _token_endpoint(self) -> str:
        url = self.options.issuer_url.rstrip("/") + _DISCOVERY
        reply = self._exchange(url, "", self.options.trust_path)
        endpoint = reply.document.get("token_endpoint")
        if reply.status != http.client.OK or not isinstance(endpoint, str):
            raise TokenUnavailableError(
                f"{url} names no token_endpoint (status {reply.status}): is issuerUrl right?"
            )
        try:
            _check_private(endpoint, f"the token_endpoint of {url}")
        except InputError as error:
            raise TokenUnavailableError(str(error)) from error
        return endpoint


def http_json(url: str, form: str, trust_path: str) -> JsonReply:
    """One request to the issuer."""
    where = urlsplit(url)
    context = client_context(trust_path, "trustCertsFilePath") if where.scheme == "https" else None
    target = where.path + (f"?{where.query}" if where.query else "")
    try:
        status, body = _asked(_connection(where.hostname or "", where.port, context), target, form)
    except (OSError, http.client.HTTPException, UnicodeError) as error:
        # UnicodeError: a part of the host's name that is too long, for example.
        why = tls_failure(error, "trustCertsFilePath in authParams")
        why = why or getattr(error, "strerror", None) or type(error).__name__
        raise TokenUnavailableError(f"the issuer at {url} does not answer: {why}") from error
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        document = {}
    return JsonReply(status, document if isinstance(document, dict) else {})


def _connection(
    host: str, port: int | None, context: ssl.SSLContext | None
) -> http.client.HTTPConnection:
    if context is None:
        return http.client.HTTPConnection(host, port, timeout=ISSUER_TIMEOUT_S)
    return http.client.HTTPSConnection(host, port, timeout=ISSUER_TIMEOUT_S, context=context)


def _asked(connection: http.client.HTTPConnection, target: str, form: str) -> tuple[int, bytes]:
    """Status and body of the answer to one request."""
    watch: threading.Timer | None = None
    try:
        connection.connect()
        # The time-out is one for each read: an answer that drips would never end.
        watch = threading.Timer(ISSUER_TIMEOUT_S, _shut_down, (connection.sock,))
        watch.daemon = True
        watch.start()
        if form:
            connection.request("POST", target, form.encode(), _FORM)
        else:
            connection.request("GET", target or "/", headers={"Accept": "application/json"})
        reply = connection.getresponse()
        return reply.status, reply.read(ANSWER_BYTES_MAX + 1)[:ANSWER_BYTES_MAX]
    finally:
        if watch is not None:
            watch.cancel()
        connection.close()


def _shut_down(sock: socket.socket) -> None:
    """End a connection from another thread: its reader sees the end at once."""
    with suppress(OSError):  # it has ended already
        # Not that of SSLSocket, which changes what the reader uses.
        socket.socket.shutdown(sock, socket.SHUT_RDWR)


def _life_s(found: object) -> float:
    """How long a token is valid, by what the issuer says."""
    # A comparison with NaN is false, and an integer of any length can be compared.
    if isinstance(found, bool) or not isinstance(found, int | float):
        return LIFE_UNKNOWN_S
    if not 0 < found <= LIFE_MAX_S:
        return LIFE_UNKNOWN_S
    return float(found)


def _key_of(text: str) -> tuple[str, str]:
    """The client's id and secret in a key file."""
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if isinstance(found, dict):
        pair = found.get("client_id"), found.get("client_secret")
        if isinstance(pair[0], str) and isinstance(pair[1], str) and all(pair):
            return pair[0], pair[1]
    raise InputError("privateKey is no JSON object with client_id and client_secret")


def _check_private(url: str, what: str) -> None:
    if names_user(url):
        raise InputError(f"{what} names a user or password, and is no https URL without them")
    try:
        where = urlsplit(url if url.isascii() else "")
        is_private = where.scheme == "https" or (
            where.scheme == "http" and where.hostname in _LOOPBACK
        )
        if is_private and where.hostname and where.port != 0:
            return
    except ValueError:  # the port is no port
        pass
    raise InputError(f"{what} {url[:200]!r} is no https URL, and a secret is sent to it")
