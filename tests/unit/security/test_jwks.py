"""An issuer's documents: what is read of them, what is left out, what is refused."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from hypothesis import given
from hypothesis import strategies as st

from headgate.security.jwks import (
    DOCUMENT_BYTES_MAX,
    KEYS_MAX,
    DocumentError,
    check_issuer_url,
    configuration_url,
    keys_of,
    keys_url,
)
from headgate.security.token_keys import RSA_ALGORITHMS
from tests.unit.security.jwks_examples import ISSUER, jwk, key_set, number, signing_key

KEYS_URL = "https://keys.example/set?v=1"


def configuration(**changed: Any) -> bytes:
    return json.dumps({"issuer": ISSUER, "jwks_uri": KEYS_URL, **changed}).encode()


def test_where_the_configuration_is() -> None:
    assert configuration_url("https://a/b") == "https://a/b/.well-known/openid-configuration"
    assert configuration_url("https://a/b/") == "https://a/b/.well-known/openid-configuration"


def test_the_url_of_the_keys() -> None:
    assert keys_url(configuration(), ISSUER, must_encrypt=True) == KEYS_URL


@pytest.mark.parametrize(
    ("document", "why"),
    [
        (configuration(issuer=ISSUER + "/"), "is for the issuer 'https://issuer.example/realm/'"),
        (configuration(issuer=None), "is for the issuer 'None'"),
        (configuration(jwks_uri=None), "has no jwks_uri"),
        (configuration(jwks_uri=7), "has no jwks_uri"),
        (configuration(jwks_uri="https://a/" + "x" * 3_000), "has no jwks_uri"),
        (configuration(jwks_uri="file:///etc/passwd"), "jwks_uri='file:///etc/passwd' is no URL"),
        (configuration(jwks_uri="http://keys.example/"), "is not encrypted"),
        (b"", "is no JSON"),
        (b"[]", "is no JSON object"),
        (b"[" * 100_000, "is no JSON"),
        (b"\xff\xfe", "is no JSON"),
        (b" " * (DOCUMENT_BYTES_MAX + 1), "has more than 262,144 bytes"),
    ],
)
def test_a_configuration_that_is_refused(document: bytes, why: str) -> None:
    with pytest.raises(DocumentError, match=why):
        keys_url(document, ISSUER, must_encrypt=False)


def test_an_issuer_in_plain_text_may_have_such_keys() -> None:
    document = json.dumps({"issuer": "http://a", "jwks_uri": "http://a/keys"}).encode()
    assert keys_url(document, "http://a", must_encrypt=False) == "http://a/keys"
    with pytest.raises(DocumentError, match="https is needed"):
        keys_url(document, "http://a", must_encrypt=True)


@pytest.mark.parametrize(
    "url",
    [
        "", "issuer", "ftp://a", "file:///a", "https://", "https:///a", "https://u:p@a/",
        "https://a/#b", "https://a:port/", "https://a:99999/", "https://a b/", "https://[a/",
        "https://ä/", "https://a/\r\nHost: b", "https://a:0/", "javascript:1",
    ],
)  # fmt: skip
def test_what_is_no_url_of_an_issuer(url: str) -> None:
    with pytest.raises(DocumentError, match="is no URL such as https://host/path"):
        check_issuer_url(url, "x", must_encrypt=False)


@pytest.mark.parametrize("url", ["https://a", "https://a:8443/b?c=d", "https://[::1]:1/"])
def test_a_url_of_an_issuer(url: str) -> None:
    check_issuer_url(url, "x", must_encrypt=True)


# The set of keys ----------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["RS256", "RS512", "PS256", "ES256", "ES384", "ES512"])
def test_a_key_is_for_its_algorithm(algorithm: str) -> None:
    key = signing_key(algorithm)
    (found,) = keys_of(key_set(jwk(key, "k1")))["k1"]
    assert found.algorithms == (algorithm,)
    assert found.key.public_numbers() == key.key.public_numbers()  # type: ignore[union-attr]


def test_a_key_without_an_algorithm_has_those_of_its_kind() -> None:
    found = keys_of(
        key_set(
            jwk(signing_key(), "r", alg=None, use=None),
            jwk(signing_key("ES384"), "e", alg=None, key_ops=["verify"]),
        )
    )
    assert found["r"][0].algorithms == RSA_ALGORITHMS
    assert found["e"][0].algorithms == ("ES384",)


def test_two_keys_of_one_id() -> None:
    found = keys_of(key_set(jwk(signing_key(), "k1"), jwk(signing_key("ES256"), "k1")))
    assert [key.algorithms for key in found["k1"]] == [("RS256",), ("ES256",)]


def weak_key(bits: int, exponent: int = 65_537) -> dict[str, Any]:
    numbers = rsa.generate_private_key(65_537, bits).public_key().public_numbers()
    return {"kty": "RSA", "kid": "k1", "n": number(numbers.n), "e": number(exponent)}


SECRET = base64.urlsafe_b64encode(bytes(64)).decode()

LEFT_OUT: list[Any] = [
    {"kty": "oct", "kid": "k1", "alg": "HS256", "k": SECRET},
    {**jwk(signing_key(), "k1"), "d": "AQAB"},
    {**jwk(signing_key(), "k1"), "k": SECRET},
    jwk(signing_key(), "k1", use="enc"),
    jwk(signing_key(), "k1", use=7),
    jwk(signing_key(), "k1", key_ops=["encrypt"]),
    jwk(signing_key(), "k1", key_ops="verify"),
    jwk(signing_key(), "k1", alg="HS256"),
    jwk(signing_key(), "k1", alg="none"),
    jwk(signing_key(), "k1", alg="RSA-OAEP"),
    jwk(signing_key(), "k1", alg="ES256"),
    jwk(signing_key(), "k1", alg=["RS256"]),
    jwk(signing_key("ES256"), "k1", alg="ES384"),
    jwk(signing_key("ES256"), "k1", crv="P-384"),
    jwk(signing_key("ES256"), "k1", crv="secp256k1", alg="ES256K"),
    jwk(signing_key("ES256"), "k1", crv=["P-256"]),
    {**jwk(signing_key("ES256"), "k1"), "x": number(5, 32)},
    {"kty": "OKP", "crv": "Ed25519", "kid": "k1", "x": number(5, 32)},
    jwk(signing_key(), "k1", kty=None),
    jwk(signing_key(), "k1", n=None),
    jwk(signing_key(), "k1", n=7),
    jwk(signing_key(), "k1", n="%%%"),
    jwk(signing_key(), "k1", e=""),
    jwk(signing_key(), "k1", e=number(1)),
    jwk(signing_key(), "k1", e=number((1 << 100) + 1)),
    jwk(signing_key(), "k1", n=number((1 << 9_000) + 1)),
    weak_key(1_024),
    jwk(signing_key(), "", ),
    jwk(signing_key(), "x" * 2_000),
    {**jwk(signing_key(), "k1"), "kid": None},
    {**jwk(signing_key(), "k1"), "kid": ["k1"]},
    "k1", None, 7, [],
]  # fmt: skip


@pytest.mark.parametrize("entry", LEFT_OUT)
def test_what_is_left_out(entry: Any) -> None:
    good = jwk(signing_key(), "good")
    assert list(keys_of(key_set(entry, good))) == ["good"]
    with pytest.raises(DocumentError, match="none of the 1 keys can check tokens"):
        keys_of(key_set(entry))


@pytest.mark.parametrize(
    ("document", "why"),
    [
        (b"{}", "has no list of keys"),
        (b'{"keys": {}}', "has no list of keys"),
        (key_set(), "none of the 0 keys"),
        (key_set(*[{}] * (KEYS_MAX + 1)), "has 257 keys: 256 at most"),
        (b"nothing", "the set of keys is no JSON"),
    ],
)
def test_a_set_that_is_refused(document: bytes, why: str) -> None:
    with pytest.raises(DocumentError, match=why):
        keys_of(document)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["keys", "kty", "kid", "n", "e", "crv", "x"]), inner)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["keys", "issuer", "jwks_uri"]), JSON) | JSON)
def test_any_document_is_refused_in_words(document: Any) -> None:
    text = json.dumps(document).encode()
    with pytest.raises(DocumentError):
        keys_of(text)
    with pytest.raises(DocumentError):
        keys_url(text, ISSUER, must_encrypt=True)
