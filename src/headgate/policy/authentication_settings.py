"""The settings that say how clients authenticate, and what contradicts itself among them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from headgate.policy.setting_info import names_of, setting

_PULSAR: Final = "org.apache.pulsar.broker.authentication.AuthenticationProvider"

PROVIDER_KINDS: Final = {
    "token": "token",
    f"{_PULSAR}Token": "token",
    "basic": "basic",
    f"{_PULSAR}Basic": "basic",
    "tls": "tls",
    f"{_PULSAR}Tls": "tls",
    "openid": "openid",
    "org.apache.pulsar.broker.authentication.oidc.AuthenticationProviderOpenID": "openid",
}
"""What ``authenticationProviders`` may name: short names, and Pulsar's classes with theirs. Clients
name the method in CONNECT: ``openid`` takes tokens, too."""

_TOKENS_ONLY: Final = "Only with authenticationProviders=token."


@dataclass(slots=True)
class AuthenticationSettings:
    """The part of :class:`~headgate.policy.settings.Settings` about authentication."""

    authenticationEnabled: bool = setting(
        False,
        "Every client must present credentials, on the binary port and over HTTP. False accepts "
        "all clients without.",
    )
    authenticationProviders: str = setting(
        "",
        "How clients may authenticate, with commas between: token, basic, tls, openid, or Pulsar's "
        "classes (org.apache.pulsar.broker.authentication.AuthenticationProviderToken, ...Basic, "
        "...Tls, ....oidc.AuthenticationProviderOpenID).",
    )
    authenticationRefreshCheckSeconds: int = setting(
        60,
        "So many seconds before its credentials lapse, the broker asks a client for new ones; the "
        "connection ends when they have lapsed. Credentials that are valid for less than twice "
        "this are asked for after half of their time.",
        minimum=1,
    )
    anonymousUserRole: str = setting(
        "",
        "Role of a client that presents no credentials, or names a method that is not among "
        "authenticationProviders; empty refuses it. Wrong credentials are refused in any case.",
    )
    proxyRoles: str = setting(
        "",
        "Roles of proxies, with commas between. A proxy must name the client that it speaks for "
        "(original_principal, X-Original-Principal), which may be none of these roles.",
    )
    authenticateOriginalAuthData: bool = setting(
        False,
        "A proxy must also forward its client's credentials on the binary port, and the broker "
        "checks them; false believes the proxy's word.",
    )
    authenticateMetricsEndpoint: bool = setting(
        False,
        "GET /metrics needs credentials, too; false leaves it open to everybody, unless "
        "authorizationEnabled: then headgateMetricsRoles decides.",
    )
    tokenSecretKey: str = setting(
        "",
        "Secret that signs tokens: file:///path, data:;base64,... or base64. The file must be "
        f"readable by its owner alone. {_TOKENS_ONLY}",
        is_secret=True,
    )
    headgateTokenSecretKeyOther: str = setting(
        "",
        "A second secret, whose tokens are accepted as well, while tokens of one are replaced by "
        "tokens of the other.",
        is_secret=True,
    )
    tokenPublicKey: str = setting(
        "",
        "Public key of the pair that signs tokens, as DER or PEM: file:///path, data:;base64,... "
        f"or base64. {_TOKENS_ONLY}",
    )
    headgateTokenPublicKeyOther: str = setting(
        "",
        "A second public key, whose tokens are accepted as well, while tokens of one are replaced "
        "by tokens of the other.",
    )
    tokenPublicAlg: str = setting(
        "RS256",
        "The algorithm that the public keys are used with: RS, PS or ES with 256, 384 or 512. "
        "Tokens that name another one are refused.",
    )
    tokenAuthClaim: str = setting("sub", "The claim of a token that has the role.")
    tokenAudienceClaim: str = setting(
        "",
        "The claim of a token that must have tokenAudience, alone or in a list; empty asks for no "
        "audience.",
    )
    tokenAudience: str = setting("", "This broker among the audiences of a token.")
    tokenAllowedClockSkewSeconds: int = setting(
        0, "Seconds by which the clock that made a token may be wrong.", maximum=86_400
    )
    basicAuthConf: str = setting(
        "",
        "File of names and passwords as htpasswd -B writes it: file:///path, data:;base64,... or "
        "base64. It must be readable by its owner alone. Only with authenticationProviders=basic.",
        is_secret=True,
    )


def authentication_problems(settings: AuthenticationSettings) -> list[str]:
    """A sentence for each contradiction among the settings of authentication."""
    kinds = {PROVIDER_KINDS.get(name) for name in names_of(settings.authenticationProviders)}
    problems = [
        f"authenticationProviders names {name!r}: {', '.join(PROVIDER_KINDS)} are allowed"
        for name in names_of(settings.authenticationProviders)
        if name not in PROVIDER_KINDS
    ]
    if (settings.tokenAudienceClaim == "") != (settings.tokenAudience == ""):
        problems.append(
            "tokenAudienceClaim and tokenAudience belong together: one names the claim, the other "
            "what it must have"
        )
    if settings.anonymousUserRole in names_of(settings.proxyRoles):
        problems.append(
            f"anonymousUserRole={settings.anonymousUserRole!r} is one of proxyRoles: a client "
            "without credentials could speak for anybody"
        )
    for first, other in (
        ("tokenSecretKey", "headgateTokenSecretKeyOther"),
        ("tokenPublicKey", "headgateTokenPublicKeyOther"),
    ):
        if getattr(settings, other) and not getattr(settings, first):
            problems.append(f"{other} is a second key: set {first} first")
    if not settings.authenticationEnabled:
        return problems
    if not kinds:
        problems.append(
            "authenticationEnabled=true needs authenticationProviders: token, basic, tls or "
            "openid, or several with commas between"
        )
    if "token" in kinds and not (settings.tokenSecretKey or settings.tokenPublicKey):
        problems.append("authenticationProviders has token: set tokenSecretKey or tokenPublicKey")
    if "basic" in kinds and not settings.basicAuthConf:
        problems.append("authenticationProviders has basic: set basicAuthConf")
    return problems
