"""Which settings let readers sign in, and which are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headgate.app.openid_provider import open_id_provider
from headgate.app.sign_in.issuer_client import IssuerClient
from headgate.app.sign_in.opening import open_issuer_client
from headgate.base.errors import InputError
from headgate.policy.settings import Settings
from headgate.security.code_flow import Client
from headgate.testing import ManualClock
from tests.unit.security.made_tokens import token_provider

ISSUER, OTHER = "https://issuer.example", "https://other.example"
REDIRECT = "https://broker.example/ops/headgate/sign-in/callback"
GOOD = {
    "authenticationEnabled": True,
    "authenticationProviders": "openid",
    "openIDAllowedTokenIssuers": ISSUER,
    "openIDAllowedAudiences": "broker",
    "headgateSignInClientId": "page",
    "headgateSignInRedirectUrl": REDIRECT,
}


def opened(**changed: Any) -> IssuerClient | None:
    settings = Settings(**{**GOOD, **changed})
    clock = ManualClock()
    has_issuers = settings.authenticationProviders == "openid"
    provider = open_id_provider(settings, clock) if has_issuers else token_provider()
    return open_issuer_client(settings, [provider], clock)


def test_who_the_broker_is_to_the_issuer() -> None:
    found = opened()
    assert found is not None
    assert found.client == Client(ISSUER, "page", REDIRECT, "openid", "")
    found = opened(
        openIDAllowedTokenIssuers=f"{OTHER},{ISSUER}", headgateSignInIssuer=ISSUER,
        headgateSignInScopes="openid profile", headgateSignInAudience="broker",
    )  # fmt: skip
    assert found is not None
    assert found.client == Client(ISSUER, "page", REDIRECT, "openid profile", "broker")


def test_without_a_client_id_nobody_signs_in_at_an_issuer() -> None:
    off = {"headgateSignInClientId": "", "headgateSignInRedirectUrl": ""}
    assert opened(**off) is None
    assert open_issuer_client(Settings(), [], ManualClock()) is None
    with pytest.raises(InputError) as refusal:
        opened(headgateSignInClientId="", headgateSignInIssuer=ISSUER)
    assert [line.split(" ")[0] for line in str(refusal.value).splitlines()] == [
        "headgateSignInRedirectUrl", "headgateSignInIssuer",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"authenticationProviders": "token"}, "openid among authenticationProviders"),
        ({"headgatePageEnabled": False}, "needs headgatePageEnabled=true"),
        ({"headgateSignInIssuer": OTHER}, "one of openIDAllowedTokenIssuers"),
        ({"openIDAllowedTokenIssuers": f"{OTHER},{ISSUER}"}, "one of openIDAllowedTokenIssuers"),
        ({"headgateSignInScopes": "profile"}, "openid must be one of the scopes"),
        ({"headgateSignInRedirectUrl": ""}, "is no URL"),
        ({"headgateSignInRedirectUrl": "https://u:p@b.example/headgate/sign-in/callback"},
         "is no URL"),
        ({"headgateSignInRedirectUrl": "https://b.example/headgate/"}, "sign-in/callback at its"),
        ({"headgateSignInRedirectUrl": f"{REDIRECT}?a=b"}, "sign-in/callback at its"),
        ({"headgateSignInRedirectUrl": REDIRECT.replace("https", "http")}, "use https"),
    ],
)  # fmt: skip
def test_settings_that_contradict_each_other(changed: dict[str, Any], why: str) -> None:
    with pytest.raises(InputError, match=why):
        opened(**changed)


@pytest.mark.parametrize("host", ["localhost:8080", "127.0.0.1:8080", "[::1]:8080"])
def test_on_loopback_the_page_needs_no_tls(host: str) -> None:
    assert opened(headgateSignInRedirectUrl=f"http://{host}/headgate/sign-in/callback") is not None


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(InputError) as refusal:
        opened(headgateSignInRedirectUrl="", headgateSignInScopes="", headgatePageEnabled=False)
    assert len(str(refusal.value).splitlines()) == 3


def secret(path: Path) -> str:
    found = opened(headgateSignInClientSecretFile=str(path))
    assert found is not None
    return found._issuer.secret()


def test_the_secret_is_the_line_of_a_file_that_only_its_owner_reads(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text("s3cret of the page\n")
    with pytest.raises(InputError, match="chmod 600"):
        secret(path)
    path.chmod(0o600)
    assert secret(path) == "s3cret of the page"
    for text in ("", "\n", "two\nlines", "nul\x00"):
        path.write_text(text)
        with pytest.raises(InputError, match="headgateSignInClientSecretFile"):
            secret(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="no line of text"):
        secret(path)
    with pytest.raises(InputError, match="cannot be read"):
        secret(tmp_path / "absent")
