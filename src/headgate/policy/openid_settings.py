"""The settings of OpenID Connect: those of Pulsar's ``AuthenticationProviderOpenID`` (PIP-292)."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.base.units import S_PER_DAY, S_PER_HOUR, S_PER_MINUTE
from headgate.policy.setting_info import setting
from headgate.policy.tls_settings import TlsSettings

_TIMEOUT_MS_MAX = 60_000


@dataclass(slots=True)
class OpenIdSettings(TlsSettings):
    """The values in force. Field names are Pulsar's keys."""

    openIDAllowedTokenIssuers: str = setting(
        "",
        "Issuers whose tokens AuthenticationProviderOpenID accepts, with commas between them: the "
        "URLs exactly as tokens have them in their claim iss.",
    )
    openIDAllowedAudiences: str = setting(
        "", "A token must have one of these in its claim aud; with commas between them."
    )
    openIDTokenIssuerTrustCertsFilePath: str = setting(
        "",
        "PEM file with the authorities that issuers' certificates are checked with; empty for the "
        "system's.",
    )
    openIDRoleClaim: str = setting(
        "sub", "The claim with the role of a token; of a list the first one counts."
    )
    openIDAcceptedTimeLeewaySeconds: int = setting(
        0,
        "Seconds that clocks may differ when a token's times are checked.",
        maximum=S_PER_HOUR,
    )
    openIDCacheSize: int = setting(5, "No effect: the keys of all allowed issuers are cached.")
    openIDCacheRefreshAfterWriteSeconds: int = setting(
        18 * S_PER_HOUR,
        "Age of an issuer's keys from which the next client makes the broker fetch them again; it "
        "does not wait for them.",
        minimum=1,
    )
    openIDCacheExpirationSeconds: int = setting(
        S_PER_DAY,
        "Age of an issuer's keys from which they no longer serve. So long clients connect while an "
        "issuer cannot be reached.",
        minimum=1,
    )
    openIDHttpConnectionTimeoutMillis: int = setting(
        10_000,
        "Milliseconds to connect to an issuer.",
        minimum=1,
        maximum=_TIMEOUT_MS_MAX,
    )
    openIDHttpReadTimeoutMillis: int = setting(
        10_000,
        "Milliseconds that an issuer may take for one answer, to its last byte.",
        minimum=1,
        maximum=_TIMEOUT_MS_MAX,
    )
    openIDKeyIdCacheMissRefreshSeconds: int = setting(
        5 * S_PER_MINUTE,
        "If a token names a key that is not among its issuer's cached ones, they are fetched "
        "again, but not within so many seconds after the last time.",
    )
    openIDRequireIssuersUseHttps: bool = setting(
        True, "Refuse issuers whose URL is not encrypted. Set it to false for tests only."
    )
    openIDFallbackDiscoveryMode: str = setting(
        "DISABLED",
        "Where tokens of other issuers come from. The modes for Kubernetes are not built.",
        choices=("DISABLED",),
    )
