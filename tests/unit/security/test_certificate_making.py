"""An authority and its certificates hold what TLS asks of them, and nothing by chance."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID
from cryptography.x509.verification import PolicyBuilder, Store

from headgate.base.errors import InputError
from headgate.security.certificate_making import Authority, Made, new_ec_key
from headgate.security.certificates import read_certificates
from headgate.security.errors import InvalidKeyError

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
KEY = new_ec_key()


def one_key() -> object:
    return KEY


AUTHORITY = Authority.new(NOW, new_ec_key, lambda: 7)


def certificate(made: Made) -> x509.Certificate:
    return read_certificates(made.certificate, "x")[0]


def test_time_key_and_serial_number_are_arguments() -> None:
    found = certificate(AUTHORITY.client("app", NOW, 3, lambda: KEY, lambda: 99))
    assert found.serial_number == 99
    assert found.public_key() == KEY.public_key()
    assert found.not_valid_before_utc == NOW - timedelta(hours=1)
    assert found.not_valid_after_utc == NOW + timedelta(days=3)
    assert found.issuer == certificate(AUTHORITY.made).subject


def test_a_server_is_known_by_its_names_alone() -> None:
    hosts = ["localhost", "127.0.0.1", "::1", "*.b.example", "localhost"]
    made = certificate(AUTHORITY.server(hosts, NOW, 3, new_ec_key, x509.random_serial_number))
    names = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert list(names) == [
        x509.DNSName("localhost"),
        x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
        x509.IPAddress(ipaddress.ip_address("::1")),
        x509.DNSName("*.b.example"),
    ]
    store = Store([certificate(AUTHORITY.made)])
    for name in (x509.DNSName("x.b.example"), x509.IPAddress(ipaddress.ip_address("::1"))):
        PolicyBuilder().store(store).time(NOW).build_server_verifier(name).verify(made, [])


def test_a_client_is_no_server() -> None:
    made = certificate(AUTHORITY.client("app", NOW, 3, new_ec_key, x509.random_serial_number))
    use = made.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(use) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    assert made.subject.rfc4514_string() == "CN=app"


@pytest.mark.parametrize("host", ["", "a b", "a/b", "x" * 254, "a..b", "*"])
def test_what_is_no_host(host: str) -> None:
    with pytest.raises(InputError, match="is neither a host name nor an IP address"):
        AUTHORITY.server([host], NOW, 3, new_ec_key, x509.random_serial_number)


@pytest.mark.parametrize("role", ["", "x" * 65, "a\nb"])
def test_what_is_no_role(role: str) -> None:
    with pytest.raises(InputError, match="is not allowed: 1 to 64 characters"):
        AUTHORITY.client(role, NOW, 3, new_ec_key, x509.random_serial_number)


def test_an_authority_is_read_again() -> None:
    made = AUTHORITY.made
    again = Authority.read(made.certificate, made.key, "x")
    issued = certificate(again.client("app", NOW, 3, new_ec_key, x509.random_serial_number))
    issued.verify_directly_issued_by(certificate(made))
    other = AUTHORITY.client("app", NOW, 3, new_ec_key, x509.random_serial_number)
    with pytest.raises(InvalidKeyError, match="x is not the key of the certificate"):
        Authority.read(made.certificate, other.key, "x")
