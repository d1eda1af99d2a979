"""Tokens of OpenID Connect issuers, as Pulsar's ``AuthenticationProviderOpenID`` accepts them.

Two steps, because the keys may have to be fetched between them: :func:`opened` says which key a
token needs, without any look at its signature, and :func:`principal_of` checks it with that key.
Nothing that a token names is fetched: its issuer must be in the operator's list.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from headgate.security.claims import (
    check_audience,
    check_issued,
    check_present,
    check_times,
    role_of,
    token_id_of,
)
from headgate.security.errors import CredentialsError
from headgate.security.jwks import KEY_ID_CHARACTERS_MAX
from headgate.security.provider import Principal
from headgate.security.token_keys import PAIR_ALGORITHMS, TokenKey
from headgate.security.tokens import claims_of, header_of, signed_claims, text_of

REQUIRED_CLAIMS: Final = ("exp", "iat", "sub")
"""Pulsar also asks for ``nbf``, which many issuers leave out because the standards let them."""

AUDIENCE_CLAIM: Final = "aud"
_SHOWN_MAX: Final = 200


@dataclass(frozen=True, slots=True)
class OpenIdRules:
    """What is asked of a token, by Pulsar's settings."""

    issuers: frozenset[str]
    """``openIDAllowedTokenIssuers``, compared letter by letter."""
    audiences: tuple[str, ...]
    """``openIDAllowedAudiences``: a token is for one of these."""
    role_claim: str = "sub"
    """``openIDRoleClaim``"""
    leeway_s: float = 0.0
    """``openIDAcceptedTimeLeewaySeconds``"""


@dataclass(frozen=True, slots=True)
class OpenIdToken:
    """A token of an allowed issuer, of which nothing else is checked.

    Very many may wait for the keys of an issuer that does not answer, and anybody can send them. So
    nothing of the decoded header is kept but what is needed: decoded it takes seventy times its
    bytes.
    """

    text: str = field(repr=False)
    algorithm: str
    issuer: str
    key_id: str


def opened(token: bytes | str, rules: OpenIdRules) -> OpenIdToken:
    """A token with the issuer and the key that it names.

    Raises:
        CredentialsError: it is malformed, of another issuer, names no key, or an algorithm that
            is not one of public keys.
    """
    text = text_of(token)
    header = header_of(text)
    issuer = claims_of(text).get("iss")
    if not isinstance(issuer, str) or issuer not in rules.issuers:
        raise CredentialsError(
            f"the issuer {str(issuer)[:_SHOWN_MAX]!r} of the token is not in "
            "openIDAllowedTokenIssuers"
        )
    algorithm = header.get("alg")
    if not isinstance(algorithm, str) or algorithm not in PAIR_ALGORITHMS:
        raise CredentialsError(
            f"the token names the algorithm {str(algorithm)[:20]!r}: "
            f"{', '.join(PAIR_ALGORITHMS)} are allowed"
        )
    key_id = header.get("kid")
    if not isinstance(key_id, str) or not 0 < len(key_id) <= KEY_ID_CHARACTERS_MAX:
        raise CredentialsError("the token names no key (kid) of its issuer")
    return OpenIdToken(text, algorithm, issuer, key_id)


def checked_claims(
    token: OpenIdToken, keys: Sequence[TokenKey], rules: OpenIdRules, now_s: float
) -> Mapping[str, Any]:
    """What a token says. ``keys`` are those of its issuer with the id that it names.

    Raises:
        CredentialsError: none of them signed it, it is not valid now, meant for somebody else, or
            lacks a claim.
    """
    return _checked(token, keys, rules, now_s)[0]


def principal_of(
    token: OpenIdToken, keys: Sequence[TokenKey], rules: OpenIdRules, now_s: float
) -> Principal:
    """Who a token speaks for.

    Raises:
        CredentialsError: as :func:`checked_claims`, or it has no role.
    """
    claims, lapses_s = _checked(token, keys, rules, now_s)
    return Principal(role_of(claims, rules.role_claim), lapses_s, token_id_of(claims))


def _checked(
    token: OpenIdToken, keys: Sequence[TokenKey], rules: OpenIdRules, now_s: float
) -> tuple[Mapping[str, Any], float | None]:
    """The claims of a token, and when it lapses."""
    claims = signed_claims(token.text, token.algorithm, keys)
    check_present(claims, REQUIRED_CLAIMS)
    lapses_s = check_times(claims, now_s, rules.leeway_s)
    check_issued(claims, now_s, rules.leeway_s)
    check_audience(claims, AUDIENCE_CLAIM, rules.audiences)
    return claims, lapses_s
