"""Certificates and keys in PEM: read, described and matched."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ed25519, x25519
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from headgate.security.certificate_making import Authority, new_ec_key
from headgate.security.certificates import (
    check_key_of,
    dns_names,
    facts_of,
    read_certificates,
)
from headgate.security.errors import InvalidCertificateError, InvalidKeyError

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
AUTHORITY = Authority.new(NOW, new_ec_key, x509.random_serial_number)
MADE = AUTHORITY.server(["b.example"], NOW, 10, new_ec_key, x509.random_serial_number)


def test_a_chain_keeps_its_order() -> None:
    chain = read_certificates(MADE.certificate + AUTHORITY.made.certificate, "x")
    assert [facts_of(each).subject for each in chain] == [
        "CN=b.example", "CN=Headgate trial authority",
    ]  # fmt: skip
    facts = facts_of(chain[0])
    assert facts.begins_at_s == NOW.timestamp() - 3_600
    assert facts.expires_at_s == NOW.timestamp() + 10 * 86_400


def test_dns_names() -> None:
    hosts = ["B.example", "*.b.example", "127.0.0.1"]
    made = AUTHORITY.server(hosts, NOW, 10, new_ec_key, x509.random_serial_number)
    (certificate,) = read_certificates(made.certificate, "x")
    assert dns_names(certificate) == ["b.example", "*.b.example"]
    (authority,) = read_certificates(AUTHORITY.made.certificate, "x")
    assert dns_names(authority) == []


@pytest.mark.parametrize("pem", [b"", b"text", MADE.certificate[:200], MADE.key])
def test_what_is_no_certificate(pem: bytes) -> None:
    with pytest.raises(InvalidCertificateError, match=r"^file has no certificate in PEM"):
        read_certificates(pem, "file")


def test_a_key_of_another_kind() -> None:
    (certificate,) = read_certificates(MADE.certificate, "x")
    check_key_of(certificate, MADE.key, "file")
    for key, text in (
        (ed25519.Ed25519PrivateKey.generate(), "is not the key of the certificate"),
        (x25519.X25519PrivateKey.generate(), "RSA, EC and Ed25519 keys are allowed"),
    ):
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        with pytest.raises(InvalidKeyError, match=text) as caught:
            check_key_of(certificate, pem, "file")
        assert "PRIVATE" not in str(caught.value)
