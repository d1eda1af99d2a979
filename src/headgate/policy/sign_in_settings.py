"""The settings with which readers of the page sign in at an OpenID Connect issuer."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.policy.openid_settings import OpenIdSettings
from headgate.policy.setting_info import setting


@dataclass(slots=True)
class SignInSettings(OpenIdSettings):
    """The values in force. Field names are the keys."""

    headgateSignInClientId: str = setting(
        "",
        "Readers of the page may sign in at an issuer, where the broker is registered with this "
        "client id. Empty: they cannot. Only with authenticationProviders=openid.",
    )
    headgateSignInRedirectUrl: str = setting(
        "",
        "The URL to which the issuer sends browsers back: that of the page as browsers see it, "
        "with sign-in/callback behind it, such as "
        "https://broker.example.com:8443/headgate/sign-in/callback. The issuer must know it.",
    )
    headgateSignInIssuer: str = setting(
        "",
        "The one of openIDAllowedTokenIssuers at which readers sign in; empty if there is only "
        "one.",
    )
    headgateSignInClientSecretFile: str = setting(
        "",
        "File with the secret of the client, which its owner alone may read. It is read for each "
        "sign-in. Empty for a public client.",
    )
    headgateSignInScopes: str = setting(
        "openid", "Scopes that the issuer is asked for, with blanks between; openid is one of them."
    )
    headgateSignInAudience: str = setting(
        "",
        "The issuer is asked for an access token for this audience; empty asks for none. Auth0 "
        "needs it, others ignore it.",
    )
