"""Loads certificates, keys and trusted authorities from their files, entirely or not at all."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from headgate.app.key_files import read_file
from headgate.app.tls.profile import PortContexts, Profile
from headgate.base.errors import InputError
from headgate.policy.setting_info import names_of
from headgate.policy.settings import Settings
from headgate.security.certificates import (
    CertificateFacts,
    check_key_of,
    dns_names,
    facts_of,
    read_certificates,
)
from headgate.security.errors import InvalidCertificateError, InvalidKeyError

CERTIFICATE_KEY: Final = "tlsCertificateFilePath"
KEY_KEY: Final = "tlsKeyFilePath"
TRUST_KEY: Final = "tlsTrustCertsFilePath"
REQUIRE_KEY: Final = "tlsRequireTrustedClientCertOnConnect"
SNI_CERTIFICATES_KEY: Final = "headgateTlsSniCertificateFilePaths"
SNI_KEYS_KEY: Final = "headgateTlsSniKeyFilePaths"

SNI_CERTIFICATES_MAX: Final = 100
"""Most certificates beside the first one: each look reads all of them."""


class Pair(NamedTuple):
    """Where a certificate and its key are. The texts name setting and file in errors."""

    certificate_path: str
    key_path: str
    certificate_setting: str = CERTIFICATE_KEY
    key_setting: str = KEY_KEY

    @property
    def certificate(self) -> str:
        """The setting of the certificate with its file."""
        return _what(self.certificate_setting, self.certificate_path)

    @property
    def key(self) -> str:
        """The setting of the key with its file."""
        return _what(self.key_setting, self.key_path)


class PairContents(NamedTuple):
    """The bytes of a certificate's file and of its key's."""

    certificate: bytes
    key: bytes


class Contents(NamedTuple):
    """The bytes of the files."""

    pairs: tuple[PairContents, ...]
    trust: bytes
    """Empty if clients are not asked for certificates."""


class ChangedMeanwhileError(InputError):
    """A file changed while it was read: the next look finds it whole."""


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Where the files are, and what a client must present."""

    pairs: tuple[Pair, ...]
    """The first one is for clients that ask for no name, or for one that none of them has."""
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
            (Pair(settings.tlsCertificateFilePath, settings.tlsKeyFilePath), *_sni_pairs(settings)),
            settings.tlsTrustCertsFilePath,
            settings.tlsRequireTrustedClientCertOnConnect,
        )

    def read(self) -> Contents:
        """The bytes of the files, now. Blocks.

        Raises:
            InputError: one cannot be read, or others may read a key.
        """
        trust = read_file(self.trust_path, TRUST_KEY) if self.trust_path else b""
        return Contents(tuple(_read(pair) for pair in self.pairs), trust)


def _sni_pairs(settings: Settings) -> list[Pair]:
    certificates = names_of(settings.headgateTlsSniCertificateFilePaths)
    keys = names_of(settings.headgateTlsSniKeyFilePaths)
    if len(certificates) != len(keys):
        raise InputError(
            f"{SNI_CERTIFICATES_KEY} names {len(certificates)} files and {SNI_KEYS_KEY} "
            f"{len(keys)}: each certificate has its key at the same place"
        )
    if len(keys) > SNI_CERTIFICATES_MAX:
        raise InputError(
            f"{SNI_CERTIFICATES_KEY} names {len(keys)} files: {SNI_CERTIFICATES_MAX} are allowed"
        )
    return [
        Pair(certificate, key, SNI_CERTIFICATES_KEY, SNI_KEYS_KEY)
        for certificate, key in zip(certificates, keys, strict=True)
    ]


def _read(pair: Pair) -> PairContents:
    return PairContents(
        read_file(pair.certificate_path, pair.certificate_setting),
        read_file(pair.key_path, pair.key_setting, is_secret=True),
    )


Contexts = tuple[PortContexts, ...]
"""Those of each profile."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """The contexts of one state of the files."""

    contents: Contents
    contexts: Contexts
    """Those of the first certificate."""
    by_name: Mapping[str, Contexts]
    """Those of each DNS name; ``*.`` may begin one."""
    facts: tuple[CertificateFacts, ...]
    """Those of each certificate."""

    def contexts_of(self, name: str) -> Contexts:
        """Those for clients that ask for the host ``name``, in lower case; empty for none. ``*``
        stands for one label, as clients have it (RFC 6125)."""
        _, dot, parent = name.partition(".")
        found = self.by_name.get(name)
        if found is None and dot:
            found = self.by_name.get(f"*.{parent}")
        return self.contexts if found is None else found


def load(files: TlsFiles, profiles: tuple[Profile, ...], contents: Contents) -> Loaded:
    """Contexts with ``contents``, which :meth:`TlsFiles.read` has just read. Blocks.

    Raises:
        InputError: a file is damaged, they do not belong together, or one has changed since.
    """
    trusted = ""
    if files.trust_path:
        what = _what(TRUST_KEY, files.trust_path)
        read_certificates(contents.trust, what)
        trusted = contents.trust.decode("ascii", "replace")
    all_contexts: list[Contexts] = []
    by_name: dict[str, Contexts] = {}
    facts: list[CertificateFacts] = []
    for pair, found in zip(files.pairs, contents.pairs, strict=True):
        certificate = read_certificates(found.certificate, pair.certificate)[0]
        check_key_of(certificate, found.key, pair.key)
        contexts = tuple(_contexts(files, pair, profile, trusted) for profile in profiles)
        names = dns_names(certificate)
        if all_contexts and not names:
            raise InvalidCertificateError(
                f"{pair.certificate} has no DNS name among its subject alternative names: no "
                "client can ask for it"
            )
        for name in names:
            by_name.setdefault(name, contexts)
        all_contexts.append(contexts)
        facts.append(facts_of(certificate))
    if files.read() != contents:
        raise ChangedMeanwhileError("the files of TLS changed while they were read")
    return Loaded(contents, all_contexts[0], by_name, tuple(facts))


def _contexts(files: TlsFiles, pair: Pair, profile: Profile, trusted: str) -> PortContexts:
    contexts = profile.new_contexts()
    for context in contexts.all:
        _fill(context, files, pair, trusted)
    return contexts


def _fill(context: ssl.SSLContext, files: TlsFiles, pair: Pair, trusted: str) -> None:
    try:
        # Without the last argument an encrypted key would make the process ask its terminal.
        context.load_cert_chain(pair.certificate_path, pair.key_path, password=_no_password)
    except (OSError, ValueError) as error:
        why = getattr(error, "reason", None) or error
        raise InvalidKeyError(
            f"{pair.certificate} and {pair.key} cannot be used together: {why}"
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


def _no_password() -> str:
    return ""


def _what(key: str, path: str) -> str:
    return f"{key}={path}"
