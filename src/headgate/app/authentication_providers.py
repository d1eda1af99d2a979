"""The providers of ``authenticationProviders``, with the keys and passwords that their settings
name.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from headgate.app.key_files import read_key
from headgate.app.openid_provider import open_id_provider
from headgate.base.clock import Clock
from headgate.broker.basic_provider import BasicProvider
from headgate.policy.authentication_settings import PROVIDER_KINDS
from headgate.policy.setting_info import names_of
from headgate.policy.settings import Settings
from headgate.security.certificate_provider import CertificateProvider
from headgate.security.errors import InvalidKeyError
from headgate.security.failed_attempts import FailedAttempts
from headgate.security.password_cache import PasswordCache
from headgate.security.password_file import PasswordFile
from headgate.security.provider import Provider
from headgate.security.token_keys import TokenKey, public_key, secret_key
from headgate.security.token_provider import TokenProvider
from headgate.security.tokens import TokenRules, TokenVerifier
from headgate.storage.lanes import Lane

_CACHE_KEY_BYTES = 32


def providers_of(
    settings: Settings, attempts: FailedAttempts, open_lane: Callable[[], Lane], clock: Clock
) -> list[Provider]:
    """The providers that the settings name, in their order. Reads files.

    ``attempts`` bounds how many passwords are checked; ``open_lane`` opens the thread that checks
    them, if there are any. ``clock`` gives the age of keys that are fetched.

    Raises:
        InvalidKeyError: a key or the file of passwords cannot be used.
        InputError: settings of OpenID Connect are missing or not allowed.
    """
    makers: dict[str, Callable[[], Provider]] = {
        "token": lambda: TokenProvider(TokenVerifier(token_keys(settings), token_rules(settings))),
        "basic": lambda: BasicProvider(
            password_file(settings), open_lane(), PasswordCache(os.urandom(_CACHE_KEY_BYTES)),
            attempts,
        ),
        "tls": CertificateProvider,
        "openid": lambda: open_id_provider(settings, clock),
    }  # fmt: skip
    names = names_of(settings.authenticationProviders)
    return [makers[kind]() for kind in dict.fromkeys(PROVIDER_KINDS[name] for name in names)]


def token_keys(settings: Settings) -> list[TokenKey]:
    """The keys that check tokens: secrets, then public keys.

    Raises:
        InvalidKeyError: one cannot be used.
    """
    keys: list[TokenKey] = []
    for name in ("tokenSecretKey", "headgateTokenSecretKeyOther"):
        if source := getattr(settings, name):
            keys.append(secret_key(read_key(source, name, is_secret=True), name))
    for name in ("tokenPublicKey", "headgateTokenPublicKeyOther"):
        if source := getattr(settings, name):
            data = read_key(source, name, is_secret=False)
            keys.append(public_key(data, name, settings.tokenPublicAlg))
    return keys


def token_rules(settings: Settings) -> TokenRules:
    """What is asked of a token beside its signature."""
    return TokenRules(
        role_claim=settings.tokenAuthClaim,
        audience_claim=settings.tokenAudienceClaim,
        audience=settings.tokenAudience,
        clock_skew_s=settings.tokenAllowedClockSkewSeconds,
    )


def password_file(settings: Settings) -> PasswordFile:
    """The names and passwords of ``basicAuthConf``.

    Raises:
        InvalidKeyError: they cannot be read, or one has a hash of another scheme.
    """
    what = "basicAuthConf"
    data = read_key(settings.basicAuthConf, what, is_secret=True)
    try:
        return PasswordFile.parsed(data.decode(), what)
    except UnicodeDecodeError:
        raise InvalidKeyError(f"{what} is not UTF-8 text") from None
