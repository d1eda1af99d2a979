"""Keys of an issuer, as it publishes them, and tokens that it signs."""

from __future__ import annotations

import base64
import json
from functools import cache
from typing import Any

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from headgate.security.token_keys import SigningKey, new_key_pair, private_key
from headgate.security.tokens import new_token

ISSUER = "https://issuer.example/realm"
AUDIENCE = "broker"
NOW_S = 1_800_000_000.0

_CURVES = {"ES256": ("P-256", 32), "ES384": ("P-384", 48), "ES512": ("P-521", 66)}


def number(value: int, size: int = 0) -> str:
    size = size or (value.bit_length() + 7) // 8
    return base64.urlsafe_b64encode(value.to_bytes(size, "big")).rstrip(b"=").decode()


@cache
def signing_key(algorithm: str = "RS256", name: str = "a") -> SigningKey:
    """A key of its own for each name."""
    return private_key(new_key_pair(algorithm)[0], name, algorithm)


def jwk(key: SigningKey, key_id: str, **members: Any) -> dict[str, Any]:
    """The public part as a set of keys has it; members that are None are left out."""
    public, algorithm = key.key, key.algorithms[0]
    if isinstance(public, RSAPublicKey):
        numbers = public.public_numbers()
        own = {"kty": "RSA", "n": number(numbers.n), "e": number(numbers.e)}
    else:
        curve, size = _CURVES[algorithm]
        point = public.public_numbers()  # type: ignore[union-attr]
        own = {"kty": "EC", "crv": curve, "x": number(point.x, size), "y": number(point.y, size)}
    found = {**own, "kid": key_id, "use": "sig", "alg": algorithm, **members}
    return {name: value for name, value in found.items() if value is not None}


def key_set(*keys: dict[str, Any]) -> bytes:
    return json.dumps({"keys": keys}).encode()


def claims(**changed: Any) -> dict[str, Any]:
    """Those of a valid token; a claim that is None is left out."""
    all_claims = {
        "iss": ISSUER, "aud": AUDIENCE, "sub": "app", "iat": NOW_S - 10, "exp": NOW_S + 60,
        "jti": "t1", **changed,
    }  # fmt: skip
    return {name: value for name, value in all_claims.items() if value is not None}


def token(key: SigningKey, key_id: str = "k1", **changed: Any) -> str:
    return new_token(key, claims(**changed), {"kid": key_id})
