"""The two documents of an OpenID Connect issuer: its configuration, and its set of public keys.

Discovery 1.0 and RFC 7517. A document is the issuer's, whom the operator trusts, but it came over
the network: what is not understood is left out or refused, and sizes are bounded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicNumbers
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicNumbers

from headgate.base.units import KIB
from headgate.security.certificates import RSA_BITS_MIN
from headgate.security.errors import InvalidKeyError
from headgate.security.key_sources import decoded
from headgate.security.token_keys import (
    CURVES,
    RSA_ALGORITHMS,
    PublicKey,
    TokenKey,
)

DOCUMENT_BYTES_MAX: Final = 256 * KIB
"""A longer document is refused. Large issuers have sets of 20 KiB."""

KEYS_MAX: Final = 256
RSA_BITS_MAX: Final = 8_192
"""A larger key takes milliseconds for each token."""

EXPONENT_BITS_MAX: Final = 64
URL_CHARACTERS_MAX: Final = 2_048
KEY_ID_CHARACTERS_MAX: Final = 1_000

CONFIGURATION_PATH: Final = "/.well-known/openid-configuration"

_EC_CURVES: Final = {"P-256": "ES256", "P-384": "ES384", "P-521": "ES512"}
"""Names of curves in RFC 7518, 6.2.1.1, each with its algorithm."""


class DocumentError(InvalidKeyError):
    """An issuer's document cannot be used."""


def configuration_url(issuer: str) -> str:
    """Where the configuration of ``issuer`` is."""
    return issuer.removesuffix("/") + CONFIGURATION_PATH


def check_issuer_url(url: str, what: str, *, must_encrypt: bool) -> None:
    """Check that a URL can be fetched: http or https, a host, no user, no fragment.

    Raises:
        DocumentError: it cannot, or it is not encrypted and must be.
    """
    try:
        parts = urlsplit(url)
        is_url = bool(
            parts.scheme in ("http", "https")
            and parts.hostname
            and parts.port != 0
            and "@" not in parts.netloc
            and "#" not in url
        )
    except ValueError:
        is_url = False
    if not is_url or not url.isascii() or not url.isprintable() or " " in url:
        raise DocumentError(f"{what}={url[:200]!r} is no URL such as https://host/path")
    if must_encrypt and parts.scheme != "https":
        raise DocumentError(
            f"{what}={url[:200]!r} is not encrypted: https is needed (openIDRequireIssuersUseHttps)"
        )


def configuration_of(document: bytes, issuer: str) -> Mapping[str, Any]:
    """What an issuer's configuration says.

    Raises:
        DocumentError: the document is unreadable, or another issuer's.
    """
    found = json_object(document, "the configuration")
    named = found.get("issuer")
    if named != issuer:
        raise DocumentError(f"the configuration is for the issuer {str(named)[:200]!r}")
    return found


def url_of(configuration: Mapping[str, Any], name: str, issuer: str, *, must_encrypt: bool) -> str:
    """A URL in an issuer's configuration.

    It may be on another host than the issuer, as with large issuers. It is encrypted if the
    issuer's own URL is.

    Raises:
        DocumentError: there is no such URL.
    """
    url = configuration.get(name)
    if not isinstance(url, str) or len(url) > URL_CHARACTERS_MAX:
        raise DocumentError(f"the configuration has no {name}")
    is_encrypted = must_encrypt or issuer.startswith("https:")
    check_issuer_url(url, name, must_encrypt=is_encrypted)
    return url


def keys_url(document: bytes, issuer: str, *, must_encrypt: bool) -> str:
    """The URL of the keys in an issuer's configuration.

    Raises:
        DocumentError: the document is unreadable, another issuer's, or has no such URL.
    """
    found = configuration_of(document, issuer)
    return url_of(found, "jwks_uri", issuer, must_encrypt=must_encrypt)


def keys_of(document: bytes) -> dict[str, tuple[TokenKey, ...]]:
    """The keys of a set that check signatures of tokens, by their ids.

    Left out are keys for other uses, of other kinds, without an id, and those that must not be
    used: secrets, private keys, keys that are too short or too long.

    Raises:
        DocumentError: the document is unreadable, or no key is left.
    """
    listed = json_object(document, "the set of keys").get("keys")
    if not isinstance(listed, list):
        raise DocumentError("the set of keys has no list of keys")
    if len(listed) > KEYS_MAX:
        raise DocumentError(f"the set has {len(listed):,} keys: {KEYS_MAX} at most")
    found: dict[str, tuple[TokenKey, ...]] = {}
    for entry in listed:
        key = _key(entry) if isinstance(entry, dict) else None
        if key is not None:
            key_id = entry["kid"]
            found[key_id] = (*found.get(key_id, ()), key)
    if not found:
        raise DocumentError(
            f"none of the {len(listed)} keys can check tokens: public keys with an id, RSA of "
            f"{RSA_BITS_MIN} bits or more, or of the curves {', '.join(_EC_CURVES)}"
        )
    return found


def json_object(document: bytes, what: str) -> Mapping[str, Any]:
    """An issuer's document, which ``what`` names in errors.

    Raises:
        DocumentError: it is too long, or no JSON object.
    """
    if len(document) > DOCUMENT_BYTES_MAX:
        raise DocumentError(f"{what} has more than {DOCUMENT_BYTES_MAX:,} bytes")
    try:
        found = json.loads(document)
    except (ValueError, RecursionError):
        raise DocumentError(f"{what} is no JSON") from None
    if not isinstance(found, dict):
        raise DocumentError(f"{what} is no JSON object")
    return found


def _key(entry: Mapping[str, Any]) -> TokenKey | None:
    key_id, use, operations = entry.get("kid"), entry.get("use", "sig"), entry.get("key_ops")
    if not isinstance(key_id, str) or not 0 < len(key_id) <= KEY_ID_CHARACTERS_MAX:
        return None
    may_verify = operations is None or (isinstance(operations, list) and "verify" in operations)
    # A published secret or private key belongs to everybody.
    if use != "sig" or not may_verify or "d" in entry or "k" in entry:
        return None
    try:
        kind = entry.get("kty")
        if kind == "RSA":
            return _pinned(_rsa_key(entry), RSA_ALGORITHMS, entry)
        if kind == "EC":
            algorithm = _EC_CURVES[entry["crv"]]
            return _pinned(_curve_key(entry, algorithm), (algorithm,), entry)
    except (KeyError, TypeError, ValueError, InvalidKeyError):
        return None
    return None


def _pinned(key: PublicKey, allowed: tuple[str, ...], entry: Mapping[str, Any]) -> TokenKey | None:
    """The key with the algorithm that it names, or all that suit it if it names none."""
    named = entry.get("alg")
    if named is None:
        return TokenKey(key, allowed)
    return TokenKey(key, (named,)) if named in allowed else None


def _rsa_key(entry: Mapping[str, Any]) -> PublicKey:
    modulus, exponent = _number(entry["n"]), _number(entry["e"])
    if not RSA_BITS_MIN <= modulus.bit_length() <= RSA_BITS_MAX:
        raise InvalidKeyError("the size of the key is not allowed")
    if exponent.bit_length() > EXPONENT_BITS_MAX:
        raise InvalidKeyError("the exponent of the key is not allowed")
    return RSAPublicNumbers(exponent, modulus).public_key()


def _curve_key(entry: Mapping[str, Any], algorithm: str) -> PublicKey:
    curve = CURVES[algorithm]()
    return EllipticCurvePublicNumbers(_number(entry["x"]), _number(entry["y"]), curve).public_key()


def _number(text: object) -> int:
    if not isinstance(text, str):
        raise InvalidKeyError("a number of the key is no text")
    return int.from_bytes(decoded(text), "big")
