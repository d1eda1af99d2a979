"""Loads certificate, key and trusted authorities from their files, entirely or not at all."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from typing import Final, NamedTuple

from headgate.app.key_files import read_file
from headgate.app.tls.profile import Profile
from headgate.base.errors import InputError
from headgate.policy.settings import Settings
from headgate.security.certificates import (
    CertificateFacts,
    check_key_of,
    facts_of,
    read_certificates,
)
from headgate.security.errors import InvalidCertificateError, InvalidKeyError

CERTIFICATE_KEY: Final = "tlsCertificateFilePath"
KEY_KEY: Final = "tlsKeyFilePath"
TRUST_KEY: Final = "tlsTrustCertsFilePath"
REQUIRE_KEY: Final = "tlsRequireTrustedClientCertOnConnect"


class Contents(NamedTuple):
    """The bytes of the files."""

    certificate: bytes
    key: bytes
    trust: bytes
    """Empty if clients are not asked for certificates."""


class ChangedMeanwhileError(InputError):
    """A file changed while it was read: the next look finds it whole."""


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Where the files are, and what a client must present."""

    certificate_path: str
    key_path: str
    trust_path: str
    """Empty: clients are not asked for a certificate."""
    requires_client_certificate: bool

    @classmethod
    def of(cls, settings: Settings) -> TlsFiles:
        """Those of these settings.

        Raises:
            InputError: a setting is missing or contradicts another.
        """
        ports = [
            key
            for key in ("brokerServicePortTls", "webServicePortTls")
            if getattr(settings, key) >= 0
        ]
        for key in (CERTIFICATE_KEY, KEY_KEY):
            if not getattr(settings, key):
                raise InputError(f"{' and '.join(ports)}: TLS needs {key}, which is not set")
        if settings.tlsRequireTrustedClientCertOnConnect and not settings.tlsTrustCertsFilePath:
            raise InputError(
                f"{REQUIRE_KEY}=true needs {TRUST_KEY}, which is not set: it names the authorities "
                "whose client certificates are accepted"
            )
        return cls(
            settings.tlsCertificateFilePath,
            settings.tlsKeyFilePath,
            settings.tlsTrustCertsFilePath,
            settings.tlsRequireTrustedClientCertOnConnect,
        )

    def read(self) -> Contents:
        """The bytes of the files, now. Blocks.

        Raises:
            InputError: one cannot be read, or others may read the key.
        """
        trust = read_file(self.trust_path, TRUST_KEY) if self.trust_path else b""
        return Contents(
            read_file(self.certificate_path, CERTIFICATE_KEY),
            read_file(self.key_path, KEY_KEY, is_secret=True),
            trust,
        )


@dataclass(frozen=True, slots=True)
class Loaded:
    """The contexts of one state of the files."""

    contents: Contents
    contexts: tuple[ssl.SSLContext, ...]
    """One for each profile."""
    facts: CertificateFacts


def load(files: TlsFiles, profiles: tuple[Profile, ...], contents: Contents) -> Loaded:
    """Contexts with ``contents``, which :meth:`TlsFiles.read` has just read. Blocks.

    Raises:
        InputError: a file is damaged, they do not belong together, or one has changed since.
    """
    chain = read_certificates(contents.certificate, _what(CERTIFICATE_KEY, files.certificate_path))
    check_key_of(chain[0], contents.key, _what(KEY_KEY, files.key_path))
    trusted = ""
    if files.trust_path:
        what = _what(TRUST_KEY, files.trust_path)
        read_certificates(contents.trust, what)
        trusted = contents.trust.decode("ascii", "replace")
    contexts = tuple(_context(files, profile, trusted) for profile in profiles)
    if files.read() != contents:
        raise ChangedMeanwhileError("the files of TLS changed while they were read")
    return Loaded(contents, contexts, facts_of(chain[0]))


def _context(files: TlsFiles, profile: Profile, trusted: str) -> ssl.SSLContext:
    context = profile.new_context()
    try:
        # Without the last argument an encrypted key would make the process ask its terminal.
        context.load_cert_chain(files.certificate_path, files.key_path, password=_no_password)
    except (OSError, ValueError) as error:
        why = getattr(error, "reason", None) or error
        raise InvalidKeyError(
            f"{_what(CERTIFICATE_KEY, files.certificate_path)} and "
            f"{_what(KEY_KEY, files.key_path)} cannot be used together: {why}"
        ) from error
    if trusted:
        try:
            context.load_verify_locations(cadata=trusted)
        except (OSError, ValueError) as error:
            why = getattr(error, "reason", None) or error
            raise InvalidCertificateError(
                f"{_what(TRUST_KEY, files.trust_path)} cannot be used: {why}"
            ) from error
        required = files.requires_client_certificate
        context.verify_mode = ssl.CERT_REQUIRED if required else ssl.CERT_OPTIONAL
    return context


def _no_password() -> str:
    return ""


def _what(key: str, path: str) -> str:
    return f"{key}={path}"
