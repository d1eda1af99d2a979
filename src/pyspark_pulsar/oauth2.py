"""OAuth 2.0's client credentials flow: tokens of an issuer for the id and secret in a key file.

As Pulsar's ``AuthenticationOAuth2``: the issuer's ``/.well-known/openid-configuration`` names the
token endpoint. The secret is only sent over TLS, or to the same machine. A process keeps a token
until it nearly lapses.
"""

from __future__ import annotations

import json
import re
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote_plus, urlsplit

import urllib3

from pyspark_pulsar.body_bounds import read_body
from pyspark_pulsar.errors import AccessError, TokenUnavailableError

ISSUER_TIMEOUT_S = 10.0
ANSWER_BYTES_MAX = 1024 * 1024
LIFE_UNKNOWN_S = 60.0
"""How long a token is used if the issuer does not say when it lapses."""
LIFE_MAX_S = 10 * 365 * 86_400.0
"""A longer life is taken for a mistake. JSON may have numbers of hundreds of digits."""
LIFE_USED = 0.9
"""The part of its life after which a token is replaced."""
REST_S = 30.0
"""How long an issuer that did not answer is not asked again while the present token is valid: it
may take seconds, for which all requests of the process wait."""
KEY_BYTES_MAX = 64 * 1024

TOKEN_TEXT = re.compile(r"[!-~]+")
"""A valid header value: ASCII without spaces."""

_DISCOVERY = "/.well-known/openid-configuration"
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_SERVER_ERRORS = frozenset({429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class OAuth2:
    """An issuer, and the file of the client's key for it."""

    issuer_url: str
    key_path: str
    audience: str = ""
    scope: str = ""
    trust_path: str | None = None
    """PEM file of the authorities that the issuer's certificate may have; None: the public ones."""


class _Held(NamedTuple):
    token: str
    renew_s: float
    lapse_s: float


Exchange = Callable[[str, Mapping[str, str] | None, str | None], tuple[int, Mapping[str, Any]]]
"""``(url, form, trust_path)``: POST of a form, or GET without one; the status and the JSON object,
empty if the answer is none. Raises :class:`TokenUnavailableError`."""

_held: dict[OAuth2, _Held] = {}
_lock = threading.Lock()


def oauth2(params: str) -> OAuth2:
    """The flow for ``authParams``.

    Raises :class:`ValueError`, which never quotes a key, if they are invalid.
    """
    try:
        fields = json.loads(params)
    except ValueError:
        fields = None

    def text(*names: str) -> str:
        found = next((fields[name] for name in names if name in fields), "")
        return found if isinstance(found, str) else ""

    if not isinstance(fields, dict) or not text("issuerUrl", "issuer_url"):
        raise ValueError(
            'authParams of oauth2 must be JSON such as {"issuerUrl": "https://HOST", '
            '"privateKey": "file:///PATH", "audience": "TEXT", "scope": "TEXT"}'
        )
    issuer, key = text("issuerUrl", "issuer_url"), text("privateKey", "private_key")
    if not _is_private(issuer):
        raise ValueError("authParams of oauth2 must have an issuerUrl with https:// and no user")
    path = urlsplit(key).path if key.startswith("file:") else key
    if not path.startswith("/") or urlsplit(key).netloc not in ("", "localhost"):
        raise ValueError("authParams of oauth2 must have file:///PATH as privateKey")
    return OAuth2(
        issuer,
        key_path=path,
        audience=text("audience"),
        scope=text("scope"),
        trust_path=text("trustCertsFilePath") or None,
    )


def current_token(
    flow: OAuth2, now_s: float | None = None, exchange: Exchange | None = None
) -> str:
    """A token that is valid now; a new one if the last one has nearly lapsed.

    Raises :class:`AccessError` if the key file cannot be used or the issuer refuses, and
    :class:`TokenUnavailableError` if the issuer does not answer and the last token has lapsed.
    """
    now_s = time.monotonic() if now_s is None else now_s
    with _lock:
        held = _held.get(flow)
        if held is None or now_s >= held.renew_s:
            try:
                held = _held[flow] = _fetched(flow, now_s, exchange or _exchange)
            except TokenUnavailableError:
                if held is None or now_s >= held.lapse_s:
                    raise
                held = held._replace(renew_s=min(now_s + REST_S, held.lapse_s))
                _held[flow] = held
        return held.token


def _fetched(flow: OAuth2, now_s: float, exchange: Exchange) -> _Held:
    client_id, client_secret = _key_of(flow)
    discovery = flow.issuer_url.rstrip("/") + _DISCOVERY
    status, document = exchange(discovery, None, flow.trust_path)
    endpoint = document.get("token_endpoint")
    if status != 200 or not isinstance(endpoint, str) or not _is_private(endpoint):
        _raise(status, f"{discovery} names no token_endpoint with https:// (status {status})")
    form = {
        "grant_type": "client_credentials",
        "client_id": client_id,
        "client_secret": client_secret,
        "audience": flow.audience,
        "scope": flow.scope,
    }
    form = {name: value for name, value in form.items() if value}
    status, document = exchange(str(endpoint), form, flow.trust_path)
    token, life_s = document.get("access_token"), _life_s(document.get("expires_in"))
    if status != 200 or not (isinstance(token, str) and TOKEN_TEXT.fullmatch(token)):
        why = str(document.get("error", "no access_token"))
        if client_secret in why or quote_plus(client_secret) in why:
            why = "no access_token"
        _raise(
            status, f"{endpoint} gives no token (status {status}: {why[:100]}): check authParams"
        )
    return _Held(str(token), now_s + life_s * LIFE_USED, now_s + life_s)


def _life_s(found: object) -> float:
    """How long a token is valid, by what the issuer says."""
    # A comparison with NaN is false, and an integer of any length can be compared.
    if isinstance(found, bool) or not isinstance(found, int | float):
        return LIFE_UNKNOWN_S
    if not 0 < found <= LIFE_MAX_S:
        return LIFE_UNKNOWN_S
    return float(found)


def _raise(status: int, text: str) -> None:
    raise (TokenUnavailableError if status in _SERVER_ERRORS else AccessError)(text)


def _key_of(flow: OAuth2) -> tuple[str, str]:
    """The client's id and secret."""
    what = f"the key file {flow.key_path} of authParams"
    try:
        with Path(flow.key_path).open("rb") as file:
            found = json.loads(file.read(KEY_BYTES_MAX))
    except OSError as error:
        raise AccessError(f"{what} cannot be read: {error.strerror}") from None
    except ValueError:
        found = None
    if isinstance(found, dict):
        pair = found.get("client_id"), found.get("client_secret")
        if isinstance(pair[0], str) and isinstance(pair[1], str) and all(pair):
            return pair[0], pair[1]
    raise AccessError(f"{what} is no JSON object with client_id and client_secret")


def _exchange(
    url: str, form: Mapping[str, str] | None, trust_path: str | None
) -> tuple[int, Mapping[str, Any]]:
    try:
        context = ssl.create_default_context(cafile=trust_path)
    except OSError:
        raise AccessError(f"trustCertsFilePath {trust_path} of authParams cannot be used") from None
    pool = urllib3.PoolManager(retries=False, ssl_context=context)
    timeout = urllib3.Timeout(total=ISSUER_TIMEOUT_S)
    try:
        if form is None:
            raw = pool.request("GET", url, redirect=False, timeout=timeout, preload_content=False)
        else:
            raw = pool.request(
                "POST", url, fields=dict(form), encode_multipart=False, redirect=False,
                timeout=timeout, preload_content=False,
            )  # fmt: skip
        try:
            body = read_body(raw, ANSWER_BYTES_MAX, time.monotonic() + ISSUER_TIMEOUT_S)
        finally:
            raw.close()
    except urllib3.exceptions.HTTPError as error:
        raise TokenUnavailableError(
            f"the issuer at {url} does not answer ({type(error).__name__})"
        ) from None
    try:
        document = json.loads(body or b"")
    except (ValueError, RecursionError):
        document = None
    return raw.status, document if isinstance(document, dict) else {}


def _is_private(url: str) -> bool:
    """Whether a secret may be sent there, and errors may name it: it has no user or password."""
    try:
        where = urlsplit(url)
        if "@" in where.netloc:
            return False
        is_open = where.scheme == "http" and where.hostname in _LOOPBACK
        return bool((where.scheme == "https" or is_open) and where.hostname and where.port != 0)
    except ValueError:
        return False
