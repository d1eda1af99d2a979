"""Authenticates requests at the web port, before the admin API and ``/metrics``.

A client sends ``Authorization: Bearer TOKEN`` or ``Basic``, or has a certificate that TLS verified.
Health checks need no credentials, nor does ``/metrics`` unless ``authenticateMetricsEndpoint``;
what a client without them may do there is for authorization. Everything else needs credentials, and
wrong ones are never taken for none.
"""

from __future__ import annotations

import base64
import binascii
import logging
from collections.abc import Awaitable
from functools import partial
from typing import Final

import msgspec
from starlette.types import ASGIApp, Receive, Scope, Send

from headgate.admin.app import CREDENTIALS_REFUSED
from headgate.admin.auditing import READS
from headgate.app.served_requests import TURN_EXTENSION
from headgate.base.errors import HeadgateError, InvariantError
from headgate.base.identity import LAPSE_KEY, SCOPE_KEY, client_host
from headgate.broker.authentication import (
    NO_CREDENTIALS,
    Authentication,
    ClientCredentials,
    Session,
)
from headgate.policy.settings import Settings
from headgate.security.errors import (
    CredentialsError,
    OriginalPrincipalError,
    UncheckedCredentialsError,
)
from headgate.security.failed_attempts import PERIOD_S
from headgate.security.provider import Credentials

logger = logging.getLogger("headgate.web")

CERTIFICATE_EXTENSION: Final = "headgate.peer_certificate"
"""The extension of a request's scope that has the client's certificate, as
:meth:`ssl.SSLSocket.getpeercert` gives it."""

OPEN_PATHS: Final = frozenset({"/admin/v2/brokers/health", "/admin/v2/brokers/ready"})
METRICS_PATH: Final = "/metrics"

_CHALLENGES: Final = {"token": "Bearer", "basic": "Basic"}
"""By method, the scheme of ``Authorization``."""

_SCRIPT_CHALLENGES: Final = {"Basic": "xBasic"}
"""Schemes in the answer to a script of a page (``X-Requested-With``). At ``Basic`` a browser shows
a dialog of its own, and keeps the password until it is closed."""


class WebAuthentication:
    """An ASGI application that authenticates the client before another application."""

    def __init__(self, app: ASGIApp, authentication: Authentication, settings: Settings) -> None:
        self._app = app
        self._authentication = authentication
        self._settings = settings
        challenges = [_CHALLENGES[m] for m in authentication.methods if m in _CHALLENGES]
        self._challenges = [_challenge(scheme) for scheme in challenges]
        self._script_challenges = [
            _challenge(_SCRIPT_CHALLENGES.get(scheme, scheme)) for scheme in challenges
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve or refuse one request."""
        if self._is_open(scope) and not self._presents_any(scope):
            await self._app(scope, receive, send)
            return
        try:
            found = self._authentication.session(presented(scope))
            session = found if isinstance(found, Session) else await _waited(found, scope)
            self._authentication.check_not_revoked(session, client_host(scope))
        except UncheckedCredentialsError:
            reason = "Credentials are not checked now: try again later"
            await self._refuse(scope, send, 429, reason)
        except OriginalPrincipalError as error:
            await self._refuse(scope, send, 401, f"Invalid roles: {error}")
        except CredentialsError:
            await self._refuse(scope, send, 401, CREDENTIALS_REFUSED)
        except HeadgateError as error:
            await self._refuse(scope, send, 503, str(error))
        except InvariantError:
            raise
        except Exception:
            logger.exception("authenticating a request failed with an internal error")
            await self._refuse(scope, send, 500, "Internal error; the broker's log has more")
        else:
            lapse = partial(self._authentication.why_lapsed, session, client_host(scope))
            known = {SCOPE_KEY: session.identity, LAPSE_KEY: lapse}
            await self._app({**scope, **known}, receive, send)

    def _is_open(self, scope: Scope) -> bool:
        if scope["method"] not in READS:
            return False
        path = scope["path"].rstrip("/")
        raw_path: bytes = scope.get("raw_path") or path.encode()
        if raw_path.rstrip(b"/") != path.encode():
            return False  # another path, which only looks like it once it is decoded
        return path in OPEN_PATHS or (
            path == METRICS_PATH and not self._settings.authenticateMetricsEndpoint
        )

    def _presents_any(self, scope: Scope) -> bool:
        """Whether a request has credentials. Then it is served as their role also where it needs
        none, because authorization may ask for a right there."""
        if any(name == b"authorization" for name, _ in scope["headers"]):
            return True
        has_certificate = bool(scope.get("extensions", {}).get(CERTIFICATE_EXTENSION))
        return has_certificate and "tls" in self._authentication.methods

    async def _refuse(self, scope: Scope, send: Send, status: int, reason: str) -> None:
        body = msgspec.json.encode({"reason": reason})
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
        ]
        if status == 401:
            is_script = any(name == b"x-requested-with" for name, _ in scope["headers"])
            headers += self._script_challenges if is_script else self._challenges
        elif status == 429:
            headers.append((b"retry-after", str(int(PERIOD_S)).encode()))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send(
            {"type": "http.response.body", "body": body if scope["method"] != "HEAD" else b""}
        )


async def _waited(found: Awaitable[Session], scope: Scope) -> Session:
    """What an authentication gives in the end. Hundreds may have waited for it, and what each does
    next, with its path and query, may take milliseconds."""
    session = await found
    turn = scope.get("extensions", {}).get(TURN_EXTENSION)
    if turn is not None:
        await turn["call"]()
    return session


def _challenge(scheme: str) -> tuple[bytes, bytes]:
    return b"www-authenticate", f'{scheme} realm="headgate"'.encode()


def presented(scope: Scope) -> ClientCredentials:
    """What the client of a request presents.

    Raises:
        CredentialsError: its headers contradict each other or cannot be read.
    """
    authorization = _single(scope, b"authorization")
    certificate = scope.get("extensions", {}).get(CERTIFICATE_EXTENSION)
    original = _single(scope, b"x-original-principal") or b""
    if authorization is not None:
        method, data = _of_header(authorization)
    else:
        method, data = ("tls" if certificate else NO_CREDENTIALS), b""
    try:
        named = original.decode()
    except UnicodeDecodeError:
        raise CredentialsError("X-Original-Principal is no UTF-8 text") from None
    own = Credentials(method, data, certificate, client_host(scope))
    return ClientCredentials(own, named, can_forward=False)


def _single(scope: Scope, name: bytes) -> bytes | None:
    found = [value for key, value in scope["headers"] if key == name]
    if len(found) > 1:
        raise CredentialsError(f"the request has {len(found)} headers {name.decode()}")
    return found[0] if found else None


def _of_header(value: bytes) -> tuple[str, bytes]:
    """Method and data in ``Authorization``."""
    scheme, _, rest = value.strip().partition(b" ")
    data = rest.strip()
    if scheme.lower() == b"bearer":
        return "token", data
    if scheme.lower() != b"basic":
        raise CredentialsError("Authorization is neither Bearer nor Basic")
    try:
        return "basic", base64.b64decode(data, validate=True)
    except binascii.Error:
        raise CredentialsError("Authorization: Basic has no base64") from None
