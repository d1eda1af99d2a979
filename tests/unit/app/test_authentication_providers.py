"""Providers, keys and passwords by their settings."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import bcrypt
import pytest

from headgate.app.authentication_providers import providers_of, token_keys
from headgate.base.errors import InputError
from headgate.policy.settings import Settings
from headgate.security.errors import CredentialsError, InvalidKeyError
from headgate.security.failed_attempts import FailedAttempts
from headgate.security.provider import Credentials, Principal, Provider
from headgate.security.token_keys import new_key_pair, private_key, secret_key
from headgate.security.tokens import new_token
from headgate.storage.lanes import ThreadLane
from headgate.testing import ManualClock

NOW_S = 1_800_000_000.0
SECRETS = [bytes([number]) * 32 for number in (1, 2)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number, secret in enumerate(SECRETS):
        _private(tmp_path / f"secret{number}", secret)
    hashed = bcrypt.hashpw(b"secret", bcrypt.gensalt(4)).decode()
    _private(tmp_path / "users", f"ann:{hashed}\n".encode())
    return tmp_path


def _private(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    path.chmod(0o600)


def providers(**values: Any) -> list[Provider]:
    def no_lane() -> ThreadLane:
        raise AssertionError("no passwords, no thread")

    return providers_of(Settings(**values), FailedAttempts(), no_lane, ManualClock())


def role(provider: Provider, token: str) -> str:
    found = provider.principal(Credentials("token", token.encode()), NOW_S)
    assert isinstance(found, Principal)
    return found.role


def test_the_order_is_that_of_the_setting_and_each_method_has_one(folder: Path) -> None:
    made = providers(
        authenticationProviders="tls, token, "
        "org.apache.pulsar.broker.authentication.AuthenticationProviderTls",
        tokenSecretKey=f"file://{folder}/secret0",
    )
    assert [provider.method for provider in made] == ["tls", "token"]


def test_tokens_of_an_issuer_are_taken_beside_those_of_a_key(folder: Path) -> None:
    both = {
        "authenticationProviders": "token, openid",
        "tokenSecretKey": f"file://{folder}/secret0",
        "openIDAllowedAudiences": "here",
    }
    made = providers(**both, openIDAllowedTokenIssuers="https://issuer.example.com")
    assert [provider.method for provider in made] == ["token", "token"]
    with pytest.raises(InputError, match="openIDAllowedTokenIssuers is empty"):
        providers(**both)


def test_tokens_of_both_secrets_and_of_the_pair_are_taken(folder: Path) -> None:
    private, public = new_key_pair("ES256")
    (folder / "public").write_bytes(public)
    (provider,) = providers(
        authenticationProviders="token",
        tokenSecretKey=f"file://{folder}/secret0",
        headgateTokenSecretKeyOther=f"file://{folder}/secret1",
        tokenPublicKey=f"file://{folder}/public",
        tokenPublicAlg="ES256",
        tokenAuthClaim="name",
        tokenAudienceClaim="aud",
        tokenAudience="here",
        tokenAllowedClockSkewSeconds=10,
    )
    keys = [secret_key(secret, "k") for secret in SECRETS]
    claims = {"name": "ann", "aud": ["here"], "exp": NOW_S - 5}
    for key in (*keys, private_key(private, "k", "ES256")):
        assert role(provider, new_token(key, claims, {})) == "ann"
    for wrong in ({"aud": "there"}, {"exp": NOW_S - 10}, {"name": ""}):
        with pytest.raises(CredentialsError):
            role(provider, new_token(keys[0], claims | wrong, {}))


def test_passwords_are_checked_on_a_thread_of_their_own(folder: Path) -> None:
    async def whole() -> Principal:
        lane = ThreadLane(asyncio.get_running_loop(), "passwords")
        settings = Settings(authenticationProviders="basic", basicAuthConf=f"file://{folder}/users")
        (provider,) = providers_of(settings, FailedAttempts(), lambda: lane, ManualClock())
        found = provider.principal(Credentials("basic", b"ann:secret"), NOW_S)
        assert not isinstance(found, Principal)
        try:
            return await found
        finally:
            lane.close()

    assert asyncio.run(whole()) == Principal("ann")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"tokenSecretKey": "file:///nowhere"}, "tokenSecretKey: /nowhere cannot be read"),
        ({"tokenSecretKey": "data:;base64,c2hvcnQ="}, "tokenSecretKey has 5 bytes"),
        ({"tokenPublicKey": "data:;base64,c2hvcnQ="}, "tokenPublicKey is no public key"),
        ({"tokenPublicKey": "data:;base64,eA==", "tokenPublicAlg": "HS256"}, "no algorithm for it"),
    ],
)
def test_a_key_that_cannot_be_used_is_named(values: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidKeyError, match=said):
        token_keys(Settings(**values))


def test_a_file_that_others_may_read_is_refused(folder: Path) -> None:
    (folder / "users").chmod(0o644)
    with pytest.raises(InvalidKeyError, match=r"basicAuthConf: .* chmod 600"):
        providers(authenticationProviders="basic", basicAuthConf=f"file://{folder}/users")
