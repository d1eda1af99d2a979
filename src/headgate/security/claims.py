"""The claims of a token whose signature is right: its times, its audience, its role.

All providers of tokens read claims with these functions. Instants are compared with ``now_s``, an
argument, in seconds since the epoch.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from headgate.security.errors import CredentialsError
from headgate.security.provider import is_role

SECONDS_MAX: Final = 1 << 40
"""Instants beyond this (year 36,000) are taken for mistakes."""

Claims = Mapping[str, Any]


def check_times(claims: Claims, now_s: float, leeway_s: float) -> float | None:
    """When a token lapses, with the leeway; None if it never does.

    Raises:
        CredentialsError: it has lapsed, is not valid yet, or a claim is no instant.
    """
    expires_s = instant(claims, "exp")
    if expires_s is not None and now_s >= expires_s + leeway_s:
        raise CredentialsError(f"the token expired {now_s - expires_s:,.0f} s ago")
    begins_s = instant(claims, "nbf")
    if begins_s is not None and now_s < begins_s - leeway_s:
        raise CredentialsError(f"the token is valid in {begins_s - now_s:,.0f} s only")
    return None if expires_s is None else expires_s + leeway_s


def check_issued(claims: Claims, now_s: float, leeway_s: float) -> None:
    """Check that a token was not issued in the future.

    Raises:
        CredentialsError: it was, or its claim ``iat`` is no instant.
    """
    issued_s = instant(claims, "iat")
    if issued_s is not None and now_s < issued_s - leeway_s:
        raise CredentialsError(f"the token is issued in {issued_s - now_s:,.0f} s only")


def check_present(claims: Claims, names: Collection[str]) -> None:
    """Check that a token has claims that it needs.

    Raises:
        CredentialsError: it lacks one.
    """
    for name in names:
        if claims.get(name) is None:
            raise CredentialsError(f"the token has no claim {name}")


def check_audience(claims: Claims, claim: str, allowed: Collection[str]) -> None:
    """Check that a token is for one of the ``allowed``: its audience is one text or a list of them
    (RFC 7519, 4.1.3).

    Raises:
        CredentialsError: it is for somebody else, or does not say for whom.
    """
    value = claims.get(claim)
    audiences = [value] if isinstance(value, str) else value
    if not isinstance(audiences, list) or not any(name in audiences for name in allowed):
        names = " or ".join(repr(name) for name in allowed)
        raise CredentialsError(f"the claim {claim} of the token does not have {names}")


def role_of(claims: Claims, claim: str) -> str:
    """The role of a token. Of a list, the first one counts, as in Pulsar.

    Raises:
        CredentialsError: it has none.
    """
    value = claims.get(claim)
    found = value[0] if isinstance(value, list) and value else value
    if not isinstance(found, str) or not is_role(found):
        raise CredentialsError(f"the claim {claim} of the token has no role")
    return found


def token_id_of(claims: Claims) -> str:
    """The claim ``jti``; empty without one. Of a whole number, which some issuers give, its digits:
    else such a token could not be revoked."""
    found = claims.get("jti", "")
    if isinstance(found, int) and not isinstance(found, bool):
        return str(found)
    return found if isinstance(found, str) else ""


def instant(claims: Claims, name: str) -> float | None:
    """An instant in seconds since the epoch; None without that claim.

    Raises:
        CredentialsError: it is no number of a range that makes sense: Infinity and NaN are none.
    """
    if name not in claims:
        return None
    value = claims[name]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise CredentialsError(f"the claim {name} of the token is no instant")
    if not 0 <= value <= SECONDS_MAX:
        raise CredentialsError(f"the claim {name} of the token is no instant")
    return float(value)
