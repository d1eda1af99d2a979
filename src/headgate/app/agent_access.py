"""Authenticates requests at the agent's port: a token of Pulsar's form, of a role that may ask.

``/health`` needs no token, as a broker's readiness needs none. Without one it names nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

import msgspec
from starlette.types import ASGIApp, Receive, Scope, Send

from headgate.agent.configuration import PortSettings
from headgate.agent.page_routes import ROLE_KEY, STRANGER_KEY
from headgate.agent.web import HEALTH_PATH
from headgate.app.key_files import read_key
from headgate.app.listeners import OpenAddressError
from headgate.base.web_hosts import is_loopback
from headgate.security.errors import CredentialsError
from headgate.security.token_keys import TokenKey, public_key, secret_key
from headgate.security.tokens import TokenVerifier

_SCHEME: Final = "bearer"
_CHALLENGE: Final = (b"www-authenticate", b'Bearer realm="headgate agent"')


def check_agent_address(port: PortSettings, *, is_insecure_allowed: bool) -> str:
    """Check that the port is safe to open; returns a warning for each start, empty if it is.

    Raises:
        OpenAddressError: others than this machine can reach it, it asks for no token, and the
            operator has not said that this is meant.
    """
    if is_loopback(port.host):
        return ""
    if port.has_authentication:
        if port.tls:
            return ""
        return (
            f"listen={port.host}: clients send their tokens without TLS, where the network can "
            "read them: set tlsCertificateFilePath and tlsKeyFilePath"
        )
    if is_insecure_allowed:
        return (
            f"listen={port.host}: --insecure-listen is given and no key of tokens: every client "
            "that reaches this address sees the names of topics and subscriptions"
        )
    raise OpenAddressError(
        f"listen={port.host!r} is not allowed without tokens: every client that reaches it would "
        "see the names of topics and subscriptions. Set tokenPublicKey and roles, listen on "
        "127.0.0.1, or say that this is meant with --insecure-listen"
    )


def token_verifier(port: PortSettings) -> TokenVerifier | None:
    """What checks tokens; None without a key.

    Raises:
        InvalidKeyError: a key cannot be used.
    """
    keys: list[TokenKey] = []
    if port.secret_key:
        what = "tokenSecretKey"
        keys.append(secret_key(read_key(port.secret_key, what, is_secret=True), what))
    if port.public_key:
        what = "tokenPublicKey"
        keys.append(public_key(read_key(port.public_key, what, is_secret=False), what))
    return TokenVerifier(keys) if keys else None


class TokenGate:
    """An ASGI application that asks for a token before another application."""

    def __init__(
        self,
        app: ASGIApp,
        verifier: TokenVerifier,
        roles: Collection[str],
        now_s: Callable[[], float],
    ) -> None:
        """``roles`` are those that may ask; ``now_s`` is the time since the epoch."""
        self._app = app
        self._verifier = verifier
        self._roles = frozenset(roles)
        self._now_s = now_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve or refuse one request."""
        status, reason, role = self._checked(scope)
        if not reason:
            await self._app({**scope, ROLE_KEY: role}, receive, send)
            return
        if scope["path"] == HEALTH_PATH:
            await self._app({**scope, STRANGER_KEY: True}, receive, send)
            return
        body = msgspec.json.encode({"reason": reason})
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
        ]
        if status == 401:
            headers.append(_CHALLENGE)
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send(
            {"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body}
        )

    def _checked(self, scope: Scope) -> tuple[int, str, str]:
        """Status, reason and role; the reason is empty if the request may pass."""
        values = [value for name, value in scope["headers"] if name == b"authorization"]
        if len(values) > 1:
            return 401, f"The request has {len(values)} headers Authorization: one is allowed", ""
        value = values[0] if values else b""
        scheme, _, token = value.decode("latin-1").partition(" ")
        if not value:
            return 401, "A token is needed: Authorization: Bearer TOKEN", ""
        if scheme.lower() != _SCHEME:
            return 401, "Only tokens are accepted: Authorization: Bearer TOKEN", ""
        try:
            role = self._verifier.principal(token.strip(), self._now_s()).role
        except CredentialsError as error:
            return 401, str(error), ""
        if role not in self._roles:
            return 403, f"Role {role[:80]!r} may not ask this agent: it is not in roles", ""
        return 200, "", role
