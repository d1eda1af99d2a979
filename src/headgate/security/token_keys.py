"""Keys of tokens, and the signature algorithms that each may be used with.

The key decides about the algorithm, never the token: a token that names another one is refused
(CVE-2021-22160, and signatures made with a public key as if it were a secret).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import (
    SECP256R1,
    SECP384R1,
    SECP521R1,
    EllipticCurve,
    EllipticCurvePrivateKey,
    EllipticCurvePublicKey,
    generate_private_key,
)
from cryptography.hazmat.primitives.asymmetric.rsa import (
    RSAPrivateKey,
    RSAPublicKey,
)
from cryptography.hazmat.primitives.asymmetric.rsa import (
    generate_private_key as generate_rsa_key,
)
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_der_private_key,
    load_der_public_key,
    load_pem_private_key,
    load_pem_public_key,
)

from headgate.security.certificates import RSA_BITS_MIN
from headgate.security.errors import InvalidKeyError

SECRET_BYTES_MIN: Final = {"HS256": 32, "HS384": 48, "HS512": 64}
"""A shorter secret is refused for the algorithm, as Pulsar's library does (RFC 7518, 3.2)."""

RSA_BITS: Final = 2048
"""Of a new key."""

CURVES: Final[dict[str, type[EllipticCurve]]] = {
    "ES256": SECP256R1,
    "ES384": SECP384R1,
    "ES512": SECP521R1,
}
RSA_ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")

SECRET_ALGORITHMS: Final = tuple(SECRET_BYTES_MIN)
PAIR_ALGORITHMS: Final = (*RSA_ALGORITHMS, *CURVES)

PublicKey = RSAPublicKey | EllipticCurvePublicKey
PrivateKey = RSAPrivateKey | EllipticCurvePrivateKey


@dataclass(frozen=True, slots=True, repr=False)
class TokenKey:
    """A key that checks tokens, with the algorithms that it may be used with. Its text has no part
    of the key."""

    key: bytes | PublicKey
    algorithms: tuple[str, ...]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self.algorithms)})"


@dataclass(frozen=True, slots=True, repr=False)
class SigningKey(TokenKey):
    """A key that also signs, with the first of its algorithms."""

    private: bytes | PrivateKey


def secret_key(data: bytes, what: str, algorithm: str = "") -> SigningKey:
    """A secret, for signing and for checking. Without ``algorithm`` the strongest that its length
    allows signs, and each that it allows is accepted.

    Raises:
        InvalidKeyError: it is too short, or no algorithm of secrets.
    """
    if _is_of_pair(data):
        raise InvalidKeyError(f"{what} is a key of a pair: a secret is needed")
    allowed = [name for name in SECRET_ALGORITHMS if len(data) >= SECRET_BYTES_MIN[name]]
    if algorithm:
        _check_algorithm(algorithm, SECRET_ALGORITHMS, what)
        allowed = [name for name in allowed if name == algorithm]
    if not allowed:
        least = SECRET_BYTES_MIN[algorithm or "HS256"]
        raise InvalidKeyError(
            f"{what} has {len(data)} bytes: {algorithm or 'HS256'} needs {least} at least"
        )
    return SigningKey(data, tuple(reversed(allowed)), data)


def public_key(data: bytes, what: str, algorithm: str = "RS256") -> TokenKey:
    """A public key in DER or PEM (SubjectPublicKeyInfo), which checks tokens of one algorithm.

    Raises:
        InvalidKeyError: it is no such key, or no key for ``algorithm``.
    """
    _check_algorithm(algorithm, PAIR_ALGORITHMS, what)
    try:
        is_text = data.lstrip().startswith(b"-----BEGIN")
        found = load_pem_public_key(data) if is_text else load_der_public_key(data)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise InvalidKeyError(f"{what} is no public key in DER or PEM") from None
    if not isinstance(found, RSAPublicKey | EllipticCurvePublicKey):
        raise InvalidKeyError(f"{what} is neither an RSA key nor one of an elliptic curve")
    _check_suited(found, what, algorithm)
    return TokenKey(found, (algorithm,))


def private_key(data: bytes, what: str, algorithm: str = "RS256") -> SigningKey:
    """A private key in DER or PEM (PKCS #8, without a password), which signs.

    Raises:
        InvalidKeyError: it is no such key, or no key for ``algorithm``.
    """
    _check_algorithm(algorithm, PAIR_ALGORITHMS, what)
    try:
        is_text = data.lstrip().startswith(b"-----BEGIN")
        load = load_pem_private_key if is_text else load_der_private_key
        found = load(data, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise InvalidKeyError(
            f"{what} is no private key without a password in DER or PEM"
        ) from None
    if not isinstance(found, RSAPrivateKey | EllipticCurvePrivateKey):
        raise InvalidKeyError(f"{what} is neither an RSA key nor one of an elliptic curve")
    _check_suited(found, what, algorithm)
    return SigningKey(found.public_key(), (algorithm,), found)


def new_key_pair(algorithm: str) -> tuple[bytes, bytes]:
    """A new private key (PKCS #8) and its public key (SubjectPublicKeyInfo), both in DER.

    Raises:
        InvalidKeyError: no algorithm of key pairs.
    """
    _check_algorithm(algorithm, PAIR_ALGORITHMS, "the key pair")
    curve = CURVES.get(algorithm)
    private: PrivateKey
    if curve is None:
        private = generate_rsa_key(public_exponent=65537, key_size=RSA_BITS)
    else:
        private = generate_private_key(curve())
    return (
        private.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption()),
        private.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
    )


def _check_algorithm(algorithm: str, allowed: tuple[str, ...], what: str) -> None:
    if algorithm not in allowed:
        raise InvalidKeyError(
            f"{what}: {algorithm!r} is no algorithm for it: {', '.join(allowed)} are allowed"
        )


def _is_of_pair(data: bytes) -> bool:
    """Whether it is a private or public key, which must never serve as a secret."""
    if data.lstrip().startswith(b"-----BEGIN"):
        return True
    try:
        load_der_public_key(data)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        pass
    else:
        return True
    try:
        load_der_private_key(data, password=None)
    except ValueError:
        return False
    except (TypeError, UnsupportedAlgorithm):
        return True  # with a password, or of a kind that is not known here
    return True


def _check_suited(key: PublicKey | PrivateKey, what: str, algorithm: str) -> None:
    curve = CURVES.get(algorithm)
    if isinstance(key, RSAPublicKey | RSAPrivateKey):
        if curve is not None:
            raise InvalidKeyError(f"{what} is an RSA key: {algorithm} needs one of a curve")
        if key.key_size < RSA_BITS_MIN:
            raise InvalidKeyError(
                f"{what} has {key.key_size} bits: an RSA key needs {RSA_BITS_MIN} at least"
            )
    elif curve is None or not isinstance(key.curve, curve):
        raise InvalidKeyError(f"{what} is a key of the curve {key.curve.name}: not for {algorithm}")
