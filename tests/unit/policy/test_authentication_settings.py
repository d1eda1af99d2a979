"""What the settings of authentication allow together, and which of them are never shown."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.policy.authentication_settings import (
    PROVIDER_KINDS,
    AuthenticationSettings,
    authentication_problems,
)
from headgate.policy.setting_info import MASK
from headgate.policy.settings import SETTINGS, Settings, inconsistencies

PULSAR = "org.apache.pulsar.broker.authentication.AuthenticationProviderToken"
TOKEN = {
    "authenticationEnabled": True, "authenticationProviders": "token", "tokenSecretKey": "file:k",
}  # fmt: skip


@pytest.mark.parametrize(
    "values",
    [
        {},
        TOKEN,
        {**TOKEN, "authenticationProviders": f" {PULSAR} , tls"},
        {**TOKEN, "tokenSecretKey": "", "tokenPublicKey": "file:k"},
        {**TOKEN, "headgateTokenSecretKeyOther": "file:l"},
        {**TOKEN, "tokenAudienceClaim": "aud", "tokenAudience": "b"},
        {**TOKEN, "anonymousUserRole": "anyone", "proxyRoles": "p, q"},
        {"authenticationEnabled": True, "authenticationProviders": "tls"},
        {"authenticationProviders": "token"},
    ],
)
def test_what_goes_together(values: dict[str, Any]) -> None:
    assert authentication_problems(AuthenticationSettings(**values)) == []


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"authenticationEnabled": True}, "needs authenticationProviders"),
        ({**TOKEN, "authenticationProviders": "token, saml"}, "names 'saml': token, "),
        ({**TOKEN, "tokenSecretKey": ""}, "set tokenSecretKey or tokenPublicKey"),
        ({**TOKEN, "authenticationProviders": "token,basic"}, "set basicAuthConf"),
        ({"tokenAudienceClaim": "aud"}, "belong together"),
        ({"tokenAudience": "b"}, "belong together"),
        ({"anonymousUserRole": "q", "proxyRoles": "p, q"}, "one of proxyRoles"),
        ({"headgateTokenSecretKeyOther": "file:k"}, "set tokenSecretKey first"),
        ({"headgateTokenPublicKeyOther": "file:k"}, "set tokenPublicKey first"),
    ],
)
def test_what_contradicts_itself_is_said(values: dict[str, Any], said: str) -> None:
    (problem,) = authentication_problems(AuthenticationSettings(**values))
    assert said in problem
    assert problem in inconsistencies(Settings(**values))


def test_every_provider_has_a_short_name_and_a_class_of_pulsar() -> None:
    assert PROVIDER_KINDS[PULSAR] == "token"
    assert len(PROVIDER_KINDS) == 2 * len(set(PROVIDER_KINDS.values()))


def test_secrets_are_not_shown_and_paths_are() -> None:
    secret = [name for name, info in SETTINGS.items() if info.is_secret]
    assert secret == ["tokenSecretKey", "headgateTokenSecretKeyOther", "basicAuthConf"]
    for name in secret:
        for value in ("data:;base64,c2VjcmV0", "c2VjcmV0", "/a/key"):
            settings = Settings(**{name: value})
            assert settings.shown(name) == MASK
            assert settings.text(name) == value
        assert Settings(**{name: "file:///a/key"}).shown(name) == "file:///a/key"
        assert Settings().shown(name) == ""
    assert Settings(tokenPublicKey="data:;base64,x").shown("tokenPublicKey") == "data:;base64,x"
