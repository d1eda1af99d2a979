"""Why a broker refuses a command's credentials, and what to do. No text has a secret."""

from __future__ import annotations

import http.client
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from headgate.access.authentication import Authentication, NoHeader
from headgate.access.client_config import ClientConfig
from headgate.base.errors import HeadgateError
from headgate.base.texts import without_secrets

REFUSALS: Final = (http.client.UNAUTHORIZED, http.client.FORBIDDEN)
_ROLE_SHOWN_MAX: Final = 100
_BEARER: Final = "Bearer "


_LACKS_A_RIGHT: Final = ("Unauthorized to ", "This operation requires super-user access")
"""How Pulsar's refusals of a known role begin that lacks a right; the status may be 401."""


def advice(
    status: int,
    reason: str,
    config: ClientConfig,
    sent: Authentication,
    now_s: float | None = None,
) -> str:
    """One or two sentences on a refusal with ``status`` and ``reason``: what was sent, and what to
    check.

    ``now_s`` is in seconds since the epoch; the present without it.
    """
    if sent == NoHeader():
        return (
            f"The command sent {sent.description}. Name a client.conf with --config or "
            "PULSAR_CLIENT_CONF, a --profile, or --auth-plugin and --auth-params."
        )
    origin = f" ({config.auth_origin})" if config.auth_origin else ""
    about = _about_token(sent, time.time() if now_s is None else now_s)
    said = f"The command sent {sent.description}{origin}{about}."
    if lacks_a_right(status, reason):
        return f"{said} The broker knows this role, which lacks the right for the request."
    return f"{said} The broker does not accept it: it may have lapsed, or be of another cluster."


def lacks_a_right(status: int, reason: str) -> bool:
    """Whether the broker knows the role, and refuses what it asks for."""
    return status == http.client.FORBIDDEN or reason.startswith(_LACKS_A_RIGHT)


def scrubbed(text: str, sent: Authentication) -> str:
    """``text`` of a server, without the secrets that were sent."""
    with suppress(HeadgateError):
        text = without_secrets(text, sent.secrets())
    return text


def _about_token(sent: Authentication, now_s: float) -> str:
    """The role and the end of a token, as it says itself; nothing of what is no such token."""
    from headgate.security.errors import CredentialsError
    from headgate.security.tokens import shown

    claims: Mapping[str, Any] = {}
    with suppress(HeadgateError, CredentialsError):
        header = sent.headers().get("Authorization", "")
        if header.startswith(_BEARER):
            claims = shown(header.removeprefix(_BEARER))[1]
    parts = []
    role, expires_s = claims.get("sub"), claims.get("exp")
    if isinstance(role, str) and role:
        parts.append(f" of {role[:_ROLE_SHOWN_MAX]!r}")
    if isinstance(expires_s, int | float) and not isinstance(expires_s, bool):
        left_s = expires_s - now_s
        parts.append(f", which lapsed {-left_s:,.0f} s ago" if left_s < 0 else "")
    return "".join(parts)
