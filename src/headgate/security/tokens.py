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

from headgate.security.claims import check_audience, check_times, role_of, token_id_of
from headgate.security.errors import CredentialsError
from headgate.security.key_sources import decoded
from headgate.security.provider import Principal
from headgate.security.token_keys import SigningKey, TokenKey

TOKEN_BYTES_MAX: Final = 16 * 1024
"""A longer token is refused before anything is computed."""

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
"""The library checks the signature alone; :mod:`headgate.security.claims` checks the claims."""


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
        text = text_of(token)
        claims = signed_claims(text, header_of(text).get("alg"), self.keys)
        rules = self.rules
        lapses_s = check_times(claims, now_s, rules.clock_skew_s)
        if rules.audience_claim:
            check_audience(claims, rules.audience_claim, (rules.audience,))
        return Principal(role_of(claims, rules.role_claim), lapses_s, token_id_of(claims))


def signed_claims(token: str, named: object, keys: Sequence[TokenKey]) -> Mapping[str, Any]:
    """The claims of a token that one of ``keys`` signed; nothing else is checked. ``named`` is the
    algorithm in its header.

    Raises:
        CredentialsError: none did, or the token is malformed.
    """
    for key in keys:
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
    allowed = sorted({name for key in keys for name in key.algorithms})
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
    text = text_of(token)
    return header_of(text), claims_of(text)


def claims_of(token: str) -> Mapping[str, Any]:
    """What a token says, of which nothing is checked.

    Raises:
        CredentialsError: its claims cannot be read.
    """
    return _json(token.split(".")[1], "claims")


def text_of(token: bytes | str) -> str:
    """A token as text, without blanks around it.

    Raises:
        CredentialsError: it is too long, or no text.
    """
    if len(token) > TOKEN_BYTES_MAX:
        raise CredentialsError(f"the token has {len(token):,} bytes: {TOKEN_BYTES_MAX:,} at most")
    try:
        text = token.decode("ascii") if isinstance(token, bytes) else token
    except UnicodeDecodeError:
        raise CredentialsError("the token has bytes that no token has") from None
    return text.strip()


def header_of(token: str) -> Mapping[str, Any]:
    """The header of a token, of which nothing is checked.

    Raises:
        CredentialsError: it is no token, or asks for an extension.
    """
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
