"""Tokens: JSON Web Tokens in the form that Pulsar's ``AuthenticationProviderToken`` accepts.

The key fixes the algorithms. The times in a token are compared with ``now_s``, an argument.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import jwt
from jwt.types import Options

from headgate.security.errors import CredentialsError
from headgate.security.key_sources import decoded
from headgate.security.provider import Principal
from headgate.security.token_keys import SigningKey, TokenKey

TOKEN_BYTES_MAX: Final = 16 * 1024
"""A longer token is refused before anything is computed."""

ROLE_CHARACTERS_MAX: Final = 1_000
SECONDS_MAX: Final = 1 << 40
"""Instants beyond this (year 36,000) are taken for mistakes."""

_UNCHECKED: Final[Options] = {
    "verify_signature": True,
    "verify_exp": False,
    "verify_nbf": False,
    "verify_iat": False,
    "verify_aud": False,
    "verify_iss": False,
    "verify_sub": False,
    "verify_jti": False,
}
"""The library checks the signature alone; the claims are checked here, against ``now_s``."""


@dataclass(frozen=True, slots=True)
class TokenRules:
    """What is asked of a token beyond its signature, by Pulsar's settings of the same names."""

    role_claim: str = "sub"
    """``tokenAuthClaim``"""
    audience_claim: str = ""
    """``tokenAudienceClaim``; empty: no audience is asked for."""
    audience: str = ""
    """``tokenAudience``: the broker's name among the audiences of a token."""
    clock_skew_s: float = 0.0
    """``tokenAllowedClockSkewSeconds``"""


@dataclass(frozen=True, slots=True)
class TokenVerifier:
    """Checks tokens. With two keys, tokens of either are accepted: so a key is replaced."""

    keys: Sequence[TokenKey] = field(repr=False)
    rules: TokenRules = TokenRules()

    def principal(self, token: bytes | str, now_s: float) -> Principal:
        """Who a token speaks for.

        Raises:
            CredentialsError: the token is malformed, signed by another key, not valid now, meant
                for somebody else, or without a role.
        """
        claims = self._claims(_text_of(token))
        rules = self.rules
        expires_s = _instant(claims, "exp")
        if expires_s is not None and now_s >= expires_s + rules.clock_skew_s:
            raise CredentialsError(f"the token expired {now_s - expires_s:,.0f} s ago")
        begins_s = _instant(claims, "nbf")
        if begins_s is not None and now_s < begins_s - rules.clock_skew_s:
            raise CredentialsError(f"the token is valid in {begins_s - now_s:,.0f} s only")
        if rules.audience_claim:
            _check_audience(claims.get(rules.audience_claim), rules)
        token_id = claims.get("jti", "")
        return Principal(
            _role(claims.get(rules.role_claim), rules.role_claim),
            None if expires_s is None else expires_s + rules.clock_skew_s,
            token_id if isinstance(token_id, str) else "",
        )

    def _claims(self, token: str) -> Mapping[str, Any]:
        header = _header(token)
        named = header.get("alg")
        for key in self.keys:
            if named not in key.algorithms:
                continue
            try:
                found: Mapping[str, Any] = jwt.decode(
                    token, key.key, algorithms=[*key.algorithms], options=_UNCHECKED
                )
            except jwt.InvalidSignatureError:
                continue
            except (jwt.PyJWTError, ValueError, TypeError) as error:
                raise CredentialsError(f"the token is malformed: {type(error).__name__}") from None
            return found
        allowed = sorted({name for key in self.keys for name in key.algorithms})
        if named in allowed:
            raise CredentialsError("the token is signed by another key")
        raise CredentialsError(
            f"the token names the algorithm {str(named)[:20]!r}: {', '.join(allowed)} are allowed"
        )


def new_token(key: SigningKey, claims: Mapping[str, Any], headers: Mapping[str, str]) -> str:
    """A token, signed with the first algorithm of ``key``."""
    return jwt.encode(dict(claims), key.private, algorithm=key.algorithms[0], headers=dict(headers))


def shown(token: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Header and claims of a token, of which nothing is checked.

    Raises:
        CredentialsError: it is no token.
    """
    header = _header(_text_of(token))
    return header, _json(token.strip().split(".")[1], "claims")


def _text_of(token: bytes | str) -> str:
    if len(token) > TOKEN_BYTES_MAX:
        raise CredentialsError(f"the token has {len(token):,} bytes: {TOKEN_BYTES_MAX:,} at most")
    try:
        text = token.decode("ascii") if isinstance(token, bytes) else token
    except UnicodeDecodeError:
        raise CredentialsError("the token has bytes that no token has") from None
    return text.strip()


def _header(token: str) -> Mapping[str, Any]:
    parts = token.split(".")
    if len(parts) != 3:
        raise CredentialsError(f"a token has three parts with dots between, not {len(parts)}")
    header = _json(parts[0], "header")
    if "crit" in header:
        raise CredentialsError("the token asks for an extension (crit) that is not known here")
    return header


def _json(part: str, what: str) -> Mapping[str, Any]:
    try:
        found = json.loads(decoded(part))
    except (ValueError, RecursionError):
        raise CredentialsError(f"the {what} of the token cannot be read") from None
    if not isinstance(found, dict):
        raise CredentialsError(f"the {what} of the token cannot be read")
    return found


def _instant(claims: Mapping[str, Any], name: str) -> float | None:
    """Raises :class:`CredentialsError` for what is no number: Infinity and NaN are none."""
    if name not in claims:
        return None
    value = claims[name]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise CredentialsError(f"the claim {name} of the token is no instant")
    if not 0 <= value <= SECONDS_MAX:
        raise CredentialsError(f"the claim {name} of the token is no instant")
    return float(value)


def _check_audience(value: object, rules: TokenRules) -> None:
    """A token is for its audiences, one text or a list of them (RFC 7519, 4.1.3)."""
    audiences = [value] if isinstance(value, str) else value
    if not isinstance(audiences, list) or rules.audience not in audiences:
        raise CredentialsError(
            f"the claim {rules.audience_claim} of the token does not have {rules.audience!r}"
        )


def _role(value: object, claim: str) -> str:
    """Of a list, the first one counts, as in Pulsar."""
    found = value[0] if isinstance(value, list) and value else value
    if not isinstance(found, str) or not found.strip() or len(found) > ROLE_CHARACTERS_MAX:
        raise CredentialsError(f"the claim {claim} of the token has no role")
    return found
