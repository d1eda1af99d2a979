"""Makes the client of the issuer at which readers of the page sign in, from the settings."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import partial
from typing import Final
from urllib.parse import urlsplit

from headgate.app.issuer_http import fetch_bounds, post_form
from headgate.app.key_files import read_file
from headgate.app.openid_fetch import fetch_endpoints
from headgate.app.openid_provider import OpenIdProvider, open_id_rules
from headgate.app.sign_in.issuer_client import Issuer, IssuerClient
from headgate.app.sign_in.routes import CALLBACK
from headgate.base.clock import Clock
from headgate.base.errors import InputError
from headgate.base.units import NS_PER_S
from headgate.base.web_hosts import is_loopback, plain_host
from headgate.policy.setting_info import names_of
from headgate.policy.settings import Settings
from headgate.policy.sign_in_settings import SignInSettings
from headgate.security.code_flow import Client
from headgate.security.errors import InvalidKeyError
from headgate.security.jwks import check_issuer_url
from headgate.security.provider import Provider
from headgate.storage.lanes import ThreadLane

WAIT_S: Final = 12.0
"""How long a reader waits for the issuer: less than the page waits for the broker."""

_NEEDS_CLIENT: Final = (
    "headgateSignInRedirectUrl", "headgateSignInIssuer", "headgateSignInClientSecretFile",
    "headgateSignInAudience",
)  # fmt: skip
_SECRET: Final = "headgateSignInClientSecretFile"


def open_issuer_client(
    settings: Settings, providers: Iterable[Provider], clock: Clock
) -> IssuerClient | None:
    """What asks the issuer; None if readers do not sign in at one. Reads the client's secret.

    Raises:
        InputError: settings contradict each other, or are missing: all of them.
        InvalidKeyError: the file with the secret cannot be used.
    """
    provider = next((each for each in providers if isinstance(each, OpenIdProvider)), None)
    if problems := _problems(settings, provider is not None):
        raise InputError("\n".join(problems))
    if provider is None or not settings.headgateSignInClientId:
        return None
    bounds = fetch_bounds(settings)
    path = settings.headgateSignInClientSecretFile
    issuer = Issuer(
        Client(
            _issuer_of(settings),
            settings.headgateSignInClientId,
            settings.headgateSignInRedirectUrl,
            settings.headgateSignInScopes,
            settings.headgateSignInAudience,
        ),
        partial(fetch_endpoints, bounds=bounds),
        lambda url, body, headers: post_form(url, bounds, body, headers),
        partial(_secret, path),
        settings.openIDCacheRefreshAfterWriteSeconds * NS_PER_S,
        WAIT_S,
    )
    issuer.secret()
    return IssuerClient(
        issuer,
        provider,
        open_id_rules(settings),
        clock,
        lambda: ThreadLane(asyncio.get_running_loop(), "headgate-sign-in"),
    )


def _secret(path: str) -> str:
    """The secret in a file, without blanks around it; empty without a file."""
    if not path:
        return ""
    try:
        found = read_file(path, _SECRET, is_secret=True).decode().strip()
    except UnicodeDecodeError:
        found = ""
    if not found.isprintable() or not found:
        raise InvalidKeyError(f"{_SECRET}: {path} has no line of text")
    return found


def _issuer_of(settings: SignInSettings) -> str:
    """The issuer of the setting; the only allowed one without it; empty if there are several."""
    allowed = names_of(settings.openIDAllowedTokenIssuers)
    return settings.headgateSignInIssuer or (allowed[0] if len(allowed) == 1 else "")


def _problems(settings: Settings, has_provider: bool) -> list[str]:
    if not settings.headgateSignInClientId:
        return [
            f"{name} needs headgateSignInClientId: without it nobody signs in at an issuer"
            for name in _NEEDS_CLIENT
            if getattr(settings, name)
        ]
    problems = []
    if not has_provider:
        problems.append(
            "headgateSignInClientId needs authenticationEnabled=true and openid among "
            "authenticationProviders: the broker could not check the issuer's tokens"
        )
    if not settings.headgatePageEnabled:
        problems.append("headgateSignInClientId needs headgatePageEnabled=true: it is for the page")
    issuer = _issuer_of(settings)
    if issuer not in names_of(settings.openIDAllowedTokenIssuers):
        problems.append(
            f"headgateSignInIssuer={settings.headgateSignInIssuer!r} is not allowed; use one of "
            "openIDAllowedTokenIssuers"
        )
    if "openid" not in settings.headgateSignInScopes.split():
        problems.append(
            f"headgateSignInScopes={settings.headgateSignInScopes!r} is not allowed; openid must "
            "be one of the scopes"
        )
    return problems + _redirect_problems(settings)


def _redirect_problems(settings: Settings) -> list[str]:
    what, url = "headgateSignInRedirectUrl", settings.headgateSignInRedirectUrl
    try:
        check_issuer_url(url, what, must_encrypt=False)
    except InputError as error:
        return [str(error)]
    parts = urlsplit(url)
    if not parts.path.endswith(CALLBACK) or parts.query:
        return [f"{what}={url!r} is not allowed; use the page's URL with {CALLBACK} at its end"]
    host = plain_host(parts.hostname or "")
    must_encrypt = settings.openIDRequireIssuersUseHttps and not is_loopback(host)
    if parts.scheme != "https" and must_encrypt:
        return [f"{what}={url!r} is not allowed; use https: codes and tokens go over it"]
    return []
