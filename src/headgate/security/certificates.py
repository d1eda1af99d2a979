"""Reads certificates and private keys in PEM, and checks that they belong together."""

from __future__ import annotations

from datetime import UTC
from typing import Any, Final, NamedTuple

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
)

from headgate.security.errors import InvalidCertificateError, InvalidKeyError

RSA_BITS_MIN: Final = 2048
"""A shorter key is not safe (NIST SP 800-131A)."""


class CertificateFacts(NamedTuple):
    """What a broker reports of its certificate."""

    subject: str
    begins_at_s: int
    """Seconds since 1970 from which it is valid."""
    expires_at_s: int
    """Seconds since 1970 until which it is valid."""


def read_certificates(pem: bytes, what: str) -> list[x509.Certificate]:
    """The certificates of a file, in its order; ``what`` names setting and file in errors.

    Raises:
        InvalidCertificateError: there is none, or one is damaged.
    """
    try:
        found = x509.load_pem_x509_certificates(pem)
    except ValueError:
        found = []
    if not found:
        raise InvalidCertificateError(
            f"{what} has no certificate in PEM (-----BEGIN CERTIFICATE-----), or a damaged one"
        )
    return found


def facts_of(certificate: x509.Certificate) -> CertificateFacts:
    """Whose it is, and when it is valid."""
    return CertificateFacts(
        certificate.subject.rfc4514_string(),
        int(certificate.not_valid_before_utc.astimezone(UTC).timestamp()),
        int(certificate.not_valid_after_utc.astimezone(UTC).timestamp()),
    )


def dns_names(certificate: x509.Certificate) -> list[str]:
    """The DNS names among its subject alternative names, in lower case; ``*.`` may begin one."""
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except (x509.ExtensionNotFound, ValueError):
        return []
    return [name.lower() for name in extension.value.get_values_for_type(x509.DNSName)]


def check_key_of(certificate: x509.Certificate, pem: bytes, what: str) -> None:
    """Check that a file has the private key of ``certificate``.

    Raises:
        InvalidKeyError: it has none, or a key with a password, of another certificate, or of an
            unsafe or unsupported kind.
    """
    try:
        key: Any = load_pem_private_key(pem, password=None)
    except TypeError:
        raise InvalidKeyError(
            f"{what} is encrypted with a password: a key without one is allowed, in a file that "
            "its owner alone may read"
        ) from None
    except (ValueError, UnsupportedAlgorithm):
        raise InvalidKeyError(f"{what} has no private key in PEM, or a damaged one") from None
    if isinstance(key, rsa.RSAPrivateKey) and key.key_size < RSA_BITS_MIN:
        raise InvalidKeyError(
            f"{what} has an RSA key of {key.key_size:,} bits: {RSA_BITS_MIN:,} or more are allowed"
        )
    allowed = (
        rsa.RSAPrivateKey,
        ec.EllipticCurvePrivateKey,
        ed25519.Ed25519PrivateKey,
        ed448.Ed448PrivateKey,
    )
    if not isinstance(key, allowed):
        raise InvalidKeyError(f"{what}: RSA, EC and Ed25519 keys are allowed")
    if _public(key.public_key()) != _public(certificate.public_key()):
        raise InvalidKeyError(f"{what} is not the key of the certificate")


def _public(key: Any) -> bytes:
    encoded: bytes = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return encoded
