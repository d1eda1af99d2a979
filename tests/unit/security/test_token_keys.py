"""A key fixes its algorithms; weak and unsuited keys are refused."""

from __future__ import annotations

from functools import cache

import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_der_private_key,
)

from headgate.security.errors import InvalidKeyError
from headgate.security.token_keys import new_key_pair, private_key, public_key, secret_key

pair = cache(new_key_pair)


def test_the_length_of_a_secret_allows_algorithms() -> None:
    assert secret_key(bytes(32), "k").algorithms == ("HS256",)
    assert secret_key(bytes(48), "k").algorithms == ("HS384", "HS256")
    assert secret_key(bytes(64), "k").algorithms == ("HS512", "HS384", "HS256")
    assert secret_key(bytes(64), "k", "HS256").algorithms == ("HS256",)
    with pytest.raises(InvalidKeyError, match="k has 31 bytes: HS256 needs 32"):
        secret_key(bytes(31), "k")
    with pytest.raises(InvalidKeyError, match="k has 63 bytes: HS512 needs 64"):
        secret_key(bytes(63), "k", "HS512")
    with pytest.raises(InvalidKeyError, match="'RS256' is no algorithm"):
        secret_key(bytes(64), "k", "RS256")
    for part in pair("ES256"):
        with pytest.raises(InvalidKeyError, match="k is a key of a pair"):
            secret_key(part, "k")


@pytest.mark.parametrize("algorithm", ["RS256", "PS512", "ES256", "ES384", "ES512"])
def test_a_pair_has_one_algorithm(algorithm: str) -> None:
    private, public = pair(algorithm)
    assert private_key(private, "k", algorithm).algorithms == (algorithm,)
    assert public_key(public, "k", algorithm).algorithms == (algorithm,)
    with pytest.raises(InvalidKeyError, match="no public key"):
        public_key(private, "k", algorithm)
    with pytest.raises(InvalidKeyError, match="no private key"):
        private_key(public, "k", algorithm)


def test_pem_is_read_too() -> None:
    private = load_der_private_key(pair("ES256")[0], None)
    text = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    public = private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    assert private_key(text, "k", "ES256").algorithms == ("ES256",)
    assert public_key(public, "k", "ES256").algorithms == ("ES256",)
    locked = private.private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"password")
    )
    with pytest.raises(InvalidKeyError, match="without a password"):
        private_key(locked, "k", "ES256")


def test_a_key_of_another_kind_is_refused() -> None:
    with pytest.raises(InvalidKeyError, match="is an RSA key: ES256 needs"):
        public_key(pair("RS256")[1], "k", "ES256")
    with pytest.raises(InvalidKeyError, match="curve secp256r1: not for RS256"):
        public_key(pair("ES256")[1], "k", "RS256")
    with pytest.raises(InvalidKeyError, match="curve secp256r1: not for ES384"):
        private_key(pair("ES256")[0], "k", "ES384")
    other = ed25519.Ed25519PrivateKey.generate()
    data = other.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    with pytest.raises(InvalidKeyError, match="neither an RSA key nor"):
        public_key(data, "k")
    with pytest.raises(InvalidKeyError, match="'HS256' is no algorithm"):
        new_key_pair("HS256")


def test_a_short_rsa_key_is_refused() -> None:
    weak = rsa.generate_private_key(public_exponent=65537, key_size=1024)
    data = weak.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    with pytest.raises(InvalidKeyError, match="1024 bits: an RSA key needs 2048"):
        private_key(data, "k")


def test_the_text_of_a_key_is_no_part_of_it() -> None:
    assert repr(secret_key(b"s3cr3t" * 8, "k")) == "SigningKey(HS384, HS256)"
