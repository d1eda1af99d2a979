"""Which tokens are accepted, by an instant that is an argument, and which attacks are refused."""

from __future__ import annotations

import base64
import hmac
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.security.errors import CredentialsError
from headgate.security.provider import Principal
from headgate.security.token_keys import SigningKey, TokenKey, private_key, public_key, secret_key
from headgate.security.tokens import TokenRules, TokenVerifier, new_token, shown
from tests.unit.security.test_token_keys import pair

SECRET = secret_key(b"0123456789abcdef" * 2, "k")
NOW_S = 1_800_000_000.0


def token(claims: dict[str, Any], key: SigningKey = SECRET, **headers: str) -> str:
    return new_token(key, claims, headers)


def check(text: str | bytes, *keys: TokenKey, **rules: Any) -> Principal:
    return TokenVerifier(keys or (SECRET,), TokenRules(**rules)).principal(text, NOW_S)


def refused(text: str | bytes, why: str, *keys: TokenKey, **rules: Any) -> None:
    with pytest.raises(CredentialsError, match=why):
        check(text, *keys, **rules)


def test_the_example_of_the_standard() -> None:
    """RFC 7515, A.1."""
    key = secret_key(
        base64.urlsafe_b64decode(
            "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow=="
        ),
        "k",
    )
    text = (
        "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9"
        ".eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"
        ".dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
    )
    verifier = TokenVerifier([key], TokenRules(role_claim="iss"))
    assert verifier.principal(text, 1_300_819_379) == Principal("joe", 1_300_819_380)
    with pytest.raises(CredentialsError, match="expired 0 s ago"):
        verifier.principal(text, 1_300_819_380)


def test_role_expiry_and_id() -> None:
    assert check(token({"sub": "app"})) == Principal("app")
    claims = {"sub": "app", "exp": NOW_S + 10, "nbf": NOW_S, "jti": "t1"}
    assert check(token(claims).encode()) == Principal("app", NOW_S + 10, "t1")
    assert check(token({"sub": ["first", "second"]})).role == "first"
    assert check(token({"who": "app"}), role_claim="who").role == "app"


@pytest.mark.parametrize("role", [None, "", "  ", [], [""], 7, {"a": "b"}, "x" * 1_001])
def test_a_token_without_a_role(role: object) -> None:
    refused(token({} if role is None else {"sub": role}), "claim sub of the token has no role")


def test_times_with_the_skew() -> None:
    late, early = token({"sub": "a", "exp": NOW_S - 5}), token({"sub": "a", "nbf": NOW_S + 5})
    refused(late, "expired 5 s ago")
    refused(early, "valid in 5 s only")
    assert check(late, clock_skew_s=6).expires_s == NOW_S + 1
    assert check(early, clock_skew_s=5).role == "a"
    refused(late, "expired", clock_skew_s=5)


@pytest.mark.parametrize("name", ["exp", "nbf"])
@pytest.mark.parametrize("value", ["soon", None, True, [1], -1, 1e300, float("inf"), float("nan")])
def test_what_is_no_instant(name: str, value: object) -> None:
    refused(token({"sub": "a", name: value}), f"claim {name} of the token is no instant")


def test_the_audience_is_asked_for() -> None:
    rules = {"audience_claim": "aud", "audience": "here"}
    assert check(token({"sub": "a", "aud": "here"}), **rules).role == "a"
    assert check(token({"sub": "a", "aud": ["there", "here"]}), **rules).role == "a"
    for aud in ("there", ["there"], None, 7, "here "):
        refused(token({"sub": "a", "aud": aud}), "does not have 'here'", **rules)
    refused(token({"sub": "a"}), "does not have 'here'", **rules)
    assert check(token({"sub": "a", "aud": "there"})).role == "a"  # nobody asks


@pytest.mark.parametrize("algorithm", ["RS256", "RS512", "PS256", "ES256", "ES384", "ES512"])
def test_key_pairs(algorithm: str) -> None:
    private, public = pair(algorithm)
    text = token({"sub": "a"}, private_key(private, "k", algorithm))
    key = public_key(public, "k", algorithm)
    assert check(text, key).role == "a"
    refused(text, "allowed", SECRET)
    head, claims, signature = text.split(".")
    refused(f"{head}.{claims}.{signature[:-4]}AAAA", "another key", key)


def test_two_keys_at_once() -> None:
    other = secret_key(b"another secret of thirty-two b..", "k")
    old, new = token({"sub": "a"}), token({"sub": "a"}, other)
    assert check(old, other, SECRET).role == check(new, other, SECRET).role == "a"
    refused(old, "another key", other)
    private, public = pair("ES256")
    mixed = (public_key(public, "k", "ES256"), SECRET)
    assert check(token({"sub": "a"}, private_key(private, "k", "ES256")), *mixed).role == "a"
    assert check(old, *mixed).role == "a"


# Attacks (CVE-2021-22160 and its kin) -------------------------------------------------------------


def forged(header: dict[str, Any], claims: dict[str, Any], signature: bytes = b"") -> str:
    parts = (json.dumps(header).encode(), json.dumps(claims).encode(), signature)
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)


@pytest.mark.parametrize("name", ["none", "None", "NONE", "nOnE", "", None, 7, ["HS256"], "HS1"])
def test_no_algorithm_but_the_key_s(name: object) -> None:
    for signature in (b"", b"anything"):
        refused(forged({"alg": name}, {"sub": "admin"}, signature), "HS256 are allowed")
    refused(forged({}, {"sub": "admin"}), "HS256 are allowed")


def test_a_public_key_is_no_secret() -> None:
    _, public = pair("RS256")
    head = forged({"alg": "HS256"}, {"sub": "admin"}).removesuffix(".")
    signature = hmac.digest(public, head.encode(), "sha256")
    text = f"{head}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"
    refused(text, "algorithm 'HS256': RS256 are allowed", public_key(public, "k"))


def test_a_key_in_the_token_is_not_used() -> None:
    own = secret_key(b"the secret of the attacker, 32 b", "k")
    text = token({"sub": "admin"}, own, kid="../../dev/null", jku="http://127.0.0.1/keys")
    refused(text, "another key")
    refused(forged({"alg": "HS256", "crit": ["exp"]}, {"sub": "admin"}), "extension")


def test_an_empty_signature() -> None:
    head, claims, _ = token({"sub": "a"}).split(".")
    refused(f"{head}.{claims}.", "another key")


@pytest.mark.parametrize(
    "text",
    [
        "", ".", "..", "...", "a.b", "a.b.c.d", "e30.e30.", "\xff.e30.e30", "W10.e30.e30",
        "eyJhbGciOiJIUzI1NiJ9.W10.AAAA", "x" * 20_000, b"\xff\xfe.a.b", "%%%.%%%.%%%",
    ],
)  # fmt: skip
def test_what_is_no_token(text: str | bytes) -> None:
    with pytest.raises(CredentialsError):
        check(text)


def test_claims_that_nest_deeply() -> None:
    deep = "[" * 5_000 + "]" * 5_000
    part = base64.urlsafe_b64encode(deep.encode()).decode().rstrip("=")
    refused(f"{part}.e30.", "header of the token cannot be read")


@given(st.binary(max_size=300) | st.text(max_size=300))
def test_any_bytes_are_refused_in_words(text: str | bytes) -> None:
    with pytest.raises(CredentialsError):
        check(text)


@given(st.data())
def test_any_changed_character_breaks_the_token(data: st.DataObject) -> None:
    text = token({"sub": "app", "exp": NOW_S + 10})
    at = data.draw(st.integers(0, len(text) - 1))
    other = data.draw(st.sampled_from("ABCabc019-_."))
    changed = text[:at] + other + text[at + 1 :]
    try:
        found = check(changed)
    except CredentialsError:
        return
    # The last character of a part has bits that mean nothing.
    assert found.role == "app"
    assert changed == text or (changed[: at + 1].count(".") == 2 and at == len(text) - 1)


def test_an_error_repeats_no_token() -> None:
    text = token({"sub": "a", "exp": NOW_S - 5})
    with pytest.raises(CredentialsError) as caught:
        check(text)
    assert text.split(".")[2] not in str(caught.value)
    assert "0123456789abcdef" not in repr(TokenVerifier([SECRET]))


def test_what_a_token_says_without_a_check() -> None:
    header, claims = shown(token({"sub": "app", "exp": 1}, kid="k1"))
    assert (header["alg"], header["kid"]) == ("HS256", "k1")
    assert claims == {"sub": "app", "exp": 1}
