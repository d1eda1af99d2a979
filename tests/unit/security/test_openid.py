"""Which tokens of an issuer are accepted, and which attacks are refused."""

from __future__ import annotations

import base64
import hmac
import json
import tracemalloc
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from headgate.security.errors import CredentialsError
from headgate.security.jwks import keys_of
from headgate.security.openid import OpenIdRules, opened, principal_of
from headgate.security.provider import Principal
from headgate.security.token_keys import SigningKey, secret_key
from headgate.security.tokens import new_token
from tests.unit.security.jwks_examples import (
    AUDIENCE,
    ISSUER,
    NOW_S,
    claims,
    jwk,
    key_set,
    signing_key,
    token,
)

RULES = OpenIdRules(frozenset([ISSUER]), ("other", AUDIENCE))
KEY = signing_key()


def check(text: str | bytes, rules: OpenIdRules = RULES, key: SigningKey = KEY) -> Principal:
    keys = keys_of(key_set(jwk(key, "k1")))
    found = opened(text, rules)
    return principal_of(found, keys[found.key_id], rules, NOW_S)


def refused(text: str | bytes, why: str, rules: OpenIdRules = RULES, key: SigningKey = KEY) -> None:
    with pytest.raises(CredentialsError, match=why):
        check(text, rules, key)


@pytest.mark.parametrize("algorithm", ["RS256", "PS384", "ES256", "ES384", "ES512"])
def test_role_expiry_and_id(algorithm: str) -> None:
    key = signing_key(algorithm)
    assert check(token(key), key=key) == Principal("app", NOW_S + 60, "t1")


def test_the_role_claim() -> None:
    rules = OpenIdRules(RULES.issuers, RULES.audiences, role_claim="groups")
    assert check(token(KEY, groups="team"), rules).role == "team"
    assert check(token(KEY, groups=["team", "all"]), rules).role == "team"
    refused(token(KEY), "claim groups of the token has no role", rules)


@pytest.mark.parametrize("name", ["exp", "iat", "sub"])
def test_a_claim_that_every_token_needs(name: str) -> None:
    refused(token(KEY, **{name: None}), f"no claim {name}")


def test_the_time_it_begins_is_checked_if_it_is_there() -> None:
    assert check(token(KEY, nbf=NOW_S)).role == "app"
    refused(token(KEY, nbf=NOW_S + 1), "valid in 1 s only")


@pytest.mark.parametrize("leeway_s", [0, 5])
def test_each_time_at_its_boundary(leeway_s: int) -> None:
    rules = OpenIdRules(RULES.issuers, RULES.audiences, leeway_s=leeway_s)
    assert check(token(KEY, exp=NOW_S - leeway_s + 1), rules).expires_s == NOW_S + 1
    refused(token(KEY, exp=NOW_S - leeway_s), "expired", rules)
    for name in ("nbf", "iat"):
        assert check(token(KEY, **{name: NOW_S + leeway_s}), rules).role == "app"
        refused(token(KEY, **{name: NOW_S + leeway_s + 1}), "s only", rules)


def test_the_audience() -> None:
    assert check(token(KEY, aud=["x", "other"])).role == "app"
    for aud in ("x", [], None, ["x", "y"]):
        refused(token(KEY, aud=aud), "does not have 'other' or 'broker'")


@pytest.mark.parametrize(
    "issuer",
    [
        None, "", 7, [ISSUER], ISSUER + "/", ISSUER.upper(), "https://issuer.example",
        "http://issuer.example/realm", "https://evil.example", f"{ISSUER}@evil.example",
        "file:///etc/passwd", "http://169.254.169.254/",
    ],
)  # fmt: skip
def test_an_issuer_that_is_not_in_the_list_exactly(issuer: object) -> None:
    """The first step refuses it, before anybody could fetch what it names."""
    with pytest.raises(CredentialsError, match="is not in openIDAllowedTokenIssuers"):
        opened(forged({"alg": "RS256", "kid": "k1"}, claims(iss=issuer)), RULES)


@pytest.mark.parametrize("key_id", [None, "", 7, ["k1"], "k" * 1_001])
def test_a_token_without_a_key_id(key_id: object) -> None:
    text = forged({"alg": "RS256", "kid": key_id}, claims())
    with pytest.raises(CredentialsError, match="names no key"):
        opened(text, RULES)


def test_a_token_that_waits_for_its_key_takes_no_more_than_its_bytes() -> None:
    """Decoded, such a header takes seventy times its bytes, and anybody can send it."""
    nested: list[Any] = []
    for _ in range(300):
        nested = [nested]
    text = forged({"alg": "RS256", "kid": "k1", "more": [nested] * 18}, claims())
    tracemalloc.start()
    try:
        waiting = [opened(text, RULES) for _ in range(20)]
        taken_bytes = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert taken_bytes < len(waiting) * len(text)


# Attacks ------------------------------------------------------------------------------------------


def forged(header: dict[str, Any], said: dict[str, Any], signature: bytes = b"") -> str:
    parts = (json.dumps(header).encode(), json.dumps(said).encode(), signature)
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)


@pytest.mark.parametrize("name", ["none", "None", "nOnE", "", None, 7, "HS256", "HS512", "RS1"])
def test_no_algorithm_but_those_of_public_keys(name: object) -> None:
    """The first step refuses it: no keys are fetched for such a token."""
    with pytest.raises(CredentialsError, match="the token names the algorithm"):
        opened(forged({"alg": name, "kid": "k1"}, claims(), b"x"), RULES)


def test_the_public_key_is_no_secret() -> None:
    public = KEY.key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)  # type: ignore[union-attr]
    head = forged({"alg": "HS256", "kid": "k1"}, claims()).removesuffix(".")
    signature = hmac.digest(public, head.encode(), "sha256")
    text = f"{head}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"
    refused(text, "the token names the algorithm 'HS256'")


def test_the_key_pins_the_algorithm() -> None:
    weaker = SigningKey(KEY.key, ("RS384",), KEY.private)
    refused(token(weaker), "algorithm 'RS384': RS256 are allowed")
    curve = signing_key("ES256")
    refused(token(curve), "algorithm 'ES256': RS256 are allowed")


def test_another_key_of_the_same_id() -> None:
    refused(token(signing_key("RS256", "the attacker's")), "signed by another key")
    head, said, _ = token(KEY).split(".")
    refused(f"{head}.{said}.", "signed by another key")
    other = token(KEY, sub="admin").split(".")[1]
    refused(f"{head}.{other}.{token(KEY).split('.')[2]}", "signed by another key")


def test_keys_that_the_token_brings_are_not_used() -> None:
    own = signing_key("RS256", "the attacker's")
    headers: dict[str, Any] = {
        "kid": "k1", "jku": "http://127.0.0.1/keys", "x5u": "http://127.0.0.1/c",
        "jwk": jwk(own, "k1"),
    }  # fmt: skip
    refused(new_token(own, claims(), headers), "signed by another key")
    refused(forged({"alg": "RS256", "kid": "k1", "crit": ["exp"]}, claims()), "extension")


def test_a_secret_of_the_broker_does_not_sign_for_an_issuer() -> None:
    secret = secret_key(b"0123456789abcdef" * 2, "k")
    refused(token(secret), "the token names the algorithm 'HS256'")


@pytest.mark.parametrize("text", ["", "a.b.c", "..", b"\xff.a.b", "x" * 20_000, "e30.e30.e30"])
def test_what_is_no_token(text: str | bytes) -> None:
    with pytest.raises(CredentialsError):
        opened(text, RULES)


def test_an_error_repeats_no_token() -> None:
    text = token(KEY, exp=NOW_S - 1)
    with pytest.raises(CredentialsError) as caught:
        check(text)
    assert text.split(".")[2] not in str(caught.value)
    assert text not in repr(opened(text, RULES))
