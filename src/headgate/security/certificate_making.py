"""Makes a certificate authority, and certificates of it for a server and for clients.

They are for trials and small installations: there is no revocation, and the authority's key lies in
a file. Time, keys and serial numbers are arguments.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from headgate.base.errors import InputError
from headgate.security.certificates import check_key_of, read_certificates
from headgate.security.errors import InvalidKeyError

AUTHORITY_DAYS: Final = 3_650
"""How long an authority is valid."""

EARLIER: Final = timedelta(hours=1)
"""A certificate is valid from so long before it is made: clocks differ."""

COMMON_NAME_CHARACTERS_MAX: Final = 64
"""The bound of X.509 (RFC 5280, ub-common-name)."""

_HOST: Final = re.compile(r"(\*\.)?[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*", re.IGNORECASE)
_HOST_CHARACTERS_MAX: Final = 253

NewKey = Callable[[], ec.EllipticCurvePrivateKey]
NewSerial = Callable[[], int]

new_serial_number: Final[NewSerial] = x509.random_serial_number
"""160 random bits, as RFC 5280 asks for."""


def new_ec_key() -> ec.EllipticCurvePrivateKey:
    """A key on P-256: every client has it, and a handshake takes a tenth of one with RSA."""
    return ec.generate_private_key(ec.SECP256R1())


@dataclass(frozen=True, slots=True)
class Made:
    """A certificate and its private key, both in PEM."""

    certificate: bytes
    key: bytes


class Authority:
    """A certificate authority that signs certificates."""

    def __init__(self, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
        """For :meth:`new` and :meth:`read`."""
        self._certificate = certificate
        self._key = key

    @classmethod
    def new(cls, now: datetime, new_key: NewKey, new_serial: NewSerial) -> Authority:
        """One that signs itself."""
        key = new_key()
        name = _name("Headgate trial authority")
        builder = (
            _builder(name, name, key, now, AUTHORITY_DAYS, new_serial())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
        )
        return cls(builder.sign(key, hashes.SHA256()), key)

    @classmethod
    def read(cls, certificate: bytes, key: bytes, what: str) -> Authority:
        """One that :meth:`new` made, from its files; ``what`` names them.

        Raises:
            InputError: it is no such authority.
        """
        found = read_certificates(certificate, what)[0]
        check_key_of(found, key, what)
        private = load_pem_private_key(key, password=None)
        if not isinstance(private, ec.EllipticCurvePrivateKey):
            raise InvalidKeyError(f"{what} is no authority that headgate certs create made")
        return cls(found, private)

    @property
    def made(self) -> Made:
        """Its own certificate and key."""
        return _made(self._certificate, self._key)

    def server(
        self,
        hosts: Sequence[str],
        now: datetime,
        days: int,
        new_key: NewKey,
        new_serial: NewSerial,
    ) -> Made:
        """A certificate for a server that clients reach by these names and IP addresses.

        Raises:
            InputError: a name is no host name or address.
        """
        names = [_general_name(host) for host in dict.fromkeys(hosts)]
        common = next((host for host in hosts if len(host) <= COMMON_NAME_CHARACTERS_MAX), "server")
        use = ExtendedKeyUsageOID.SERVER_AUTH
        return self._issue(_name(common), now, days, new_key, new_serial(), use, names)

    def client(
        self, role: str, now: datetime, days: int, new_key: NewKey, new_serial: NewSerial
    ) -> Made:
        """A certificate for a client: its role is the common name, as Pulsar reads it.

        Raises:
            InputError: the role is empty, too long, or has a control character.
        """
        if not 0 < len(role) <= COMMON_NAME_CHARACTERS_MAX or not role.isprintable():
            raise InputError(
                f"role {role[:80]!r} is not allowed: 1 to {COMMON_NAME_CHARACTERS_MAX} characters "
                "without control characters are"
            )
        use = ExtendedKeyUsageOID.CLIENT_AUTH
        return self._issue(_name(role), now, days, new_key, new_serial(), use, [])

    def _issue(
        self,
        subject: x509.Name,
        now: datetime,
        days: int,
        new_key: NewKey,
        serial: int,
        use: x509.ObjectIdentifier,
        names: Sequence[x509.GeneralName],
    ) -> Made:
        key = new_key()
        builder = (
            _builder(subject, self._certificate.subject, key, now, days, serial)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([use]), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
        )
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return _made(builder.sign(self._key, hashes.SHA256()), key)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    now: datetime,
    days: int,
    serial: int,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(serial)
        .not_valid_before(now - EARLIER)
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        pass
    if len(host) > _HOST_CHARACTERS_MAX or not _HOST.fullmatch(host):
        raise InputError(f"host {host[:80]!r} is neither a host name nor an IP address")
    return x509.DNSName(host)


def _made(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Made:
    return Made(
        certificate.public_bytes(Encoding.PEM),
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
    )
