"""Versions, ciphers and groups of TLS: Mozilla's intermediate profile, version 5.7."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from headgate.app.tls.client_chains import ServerTls
from headgate.app.tls.hello import ClientHello
from headgate.base.errors import InputError
from headgate.policy.settings import Settings

VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
"""Allowed versions by their names in settings, the lowest first."""

CIPHERS: Final = {
    "ECDHE-ECDSA-AES128-GCM-SHA256": "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "ECDHE-RSA-AES128-GCM-SHA256": "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "ECDHE-ECDSA-AES256-GCM-SHA384": "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "ECDHE-RSA-AES256-GCM-SHA384": "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "ECDHE-ECDSA-CHACHA20-POLY1305": "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    "ECDHE-RSA-CHACHA20-POLY1305": "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
}
"""Suites of TLS 1.2, OpenSSL's names and the IANA's. The profile's two with DHE are left out: their
handshakes cost the broker most, and every client of Pulsar has one with ECDHE."""

CIPHERS_OF_TLS_1_3: Final = (
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
)
"""TLS 1.3 always has these."""


_P_256: Final = 23
GROUPS: Final = {29: "X25519", _P_256: "prime256v1", 24: "secp384r1"}
"""The profile's groups for the exchange of keys, OpenSSL's names by the numbers of TLS. OpenSSL
would take others with TLS 1.3: its share of an exchange in ffdhe8192 takes 130 ms, and that of its
client, who need not even have a key of its own, nothing."""


NO_COMPRESSED_CERTIFICATES: Final = 1 << 33
"""OpenSSL's SSL_OP_NO_RX_CERTIFICATE_COMPRESSION, which Python has no name for, and OpenSSL before
3.2 no meaning. With compression, which some builds have, a hundred bytes of a client become
certificates of many KiB."""


class PortContexts(NamedTuple):
    """The contexts of one certificate at one port. Python can allow a context one group or all of
    them, so there is one for each."""

    by_group: Mapping[int, ssl.SSLContext]
    """Empty without TLS 1.3."""
    before_1_3: ssl.SSLContext | None
    """For clients without TLS 1.3, with which all groups are of curves. It is restricted to none of
    them, because TLS 1.2 also wants the keys of clients' certificates on one of them. None without
    TLS 1.2."""

    @property
    def all(self) -> tuple[ssl.SSLContext, ...]:
        """Each of them."""
        older = () if self.before_1_3 is None else (self.before_1_3,)
        return (*self.by_group.values(), *older)

    def of(self, hello: ClientHello) -> ssl.SSLContext:
        """The one for a client, who may not support its group: then the handshake fails. Every
        client with TLS 1.3 supports P-256 (RFC 8446, 9.1)."""
        if self.before_1_3 is not None and not (self.by_group and hello.has_tls_1_3):
            return self.before_1_3
        group = next((group for group in hello.groups if group in self.by_group), _P_256)
        return self.by_group[group]


@dataclass(frozen=True, slots=True)
class Profile:
    """The versions and ciphers of one port."""

    lowest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2
    highest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3
    ciphers: tuple[str, ...] = tuple(CIPHERS)
    """Of TLS 1.2, by OpenSSL's names."""

    def new_contexts(self) -> PortContexts:
        """Contexts without certificates."""
        has_1_2 = self.lowest == ssl.TLSVersion.TLSv1_2
        has_1_3 = self.highest == ssl.TLSVersion.TLSv1_3
        by_group = {group: self.new_context(group) for group in GROUPS} if has_1_3 else {}
        return PortContexts(by_group, self.new_context(None) if has_1_2 else None)

    def new_context(self, group: int | None = _P_256) -> ssl.SSLContext:
        """A server's context without certificates, for one of :data:`GROUPS`; with None for all
        that OpenSSL has, and without TLS 1.3.

        It has no session tickets. With TLS 1.2 a client may resume a session of the same context,
        which trusts the same authorities. A client may not ask for another handshake in a
        connection, which would cost it nothing.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = self.lowest
        if group is None:
            context.maximum_version = ssl.TLSVersion.TLSv1_2
        else:
            context.maximum_version = self.highest
            context.set_ecdh_curve(GROUPS[group])
        if self.ciphers:
            context.set_ciphers(":".join(self.ciphers))
        context.options |= (
            ssl.OP_NO_RENEGOTIATION
            | ssl.OP_NO_COMPRESSION
            | ssl.OP_NO_TICKET
            | ssl.OP_SINGLE_ECDH_USE
        )
        # All suites are strong, and a client knows which of them its processor is fast at.
        context.options &= ~ssl.OP_CIPHER_SERVER_PREFERENCE
        # Only now: the line above removes what Python cannot name.
        context.options |= NO_COMPRESSED_CERTIFICATES
        context.num_tickets = 0
        context.sslobject_class = ServerTls
        return context


def binary_profile(settings: Settings) -> Profile:
    """That of the binary protocol.

    Raises:
        InputError: a version or cipher is not allowed.
    """
    return _profile(settings, "tlsProtocols", "tlsCiphers")


def web_profile(settings: Settings) -> Profile:
    """That of the web port, whose settings follow those of the binary protocol.

    Raises:
        InputError: a version or cipher is not allowed.
    """
    protocols = "webServiceTlsProtocols" if settings.webServiceTlsProtocols else "tlsProtocols"
    ciphers = "webServiceTlsCiphers" if settings.webServiceTlsCiphers else "tlsCiphers"
    return _profile(settings, protocols, ciphers)


def _profile(settings: Settings, protocols_key: str, ciphers_key: str) -> Profile:
    names = _names(getattr(settings, protocols_key)) or list(VERSIONS)
    for name in names:
        if name not in VERSIONS:
            raise InputError(
                f"{protocols_key}: {name[:40]!r} is not allowed; use {' and '.join(VERSIONS)}"
            )
    versions = sorted(VERSIONS[name] for name in names)
    ciphers = _ciphers(ciphers_key, _names(getattr(settings, ciphers_key)))
    if versions[0] == ssl.TLSVersion.TLSv1_2 and not ciphers:
        raise InputError(
            f"{ciphers_key} has no cipher of TLS 1.2, and {protocols_key} allows that version: add "
            f"one, or set {protocols_key}=TLSv1.3"
        )
    return Profile(versions[0], versions[-1], ciphers)


def _ciphers(key: str, names: list[str]) -> tuple[str, ...]:
    if not names:
        return tuple(CIPHERS)
    by_name = {iana: own for own, iana in CIPHERS.items()} | {own: own for own in CIPHERS}
    found = []
    for name in names:
        if name in by_name:
            found.append(by_name[name])
        elif name not in CIPHERS_OF_TLS_1_3:
            raise InputError(
                f"{key}: {name[:80]!r} is not allowed; use some of "
                f"{', '.join([*CIPHERS, *CIPHERS_OF_TLS_1_3])}"
            )
    return tuple(dict.fromkeys(found))


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
