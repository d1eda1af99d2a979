"""The settings of TLS, with Pulsar's keys."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.policy.authorization_settings import AuthorizationSettings
from headgate.policy.setting_info import port_setting, setting


@dataclass(slots=True)
class TlsSettings(AuthorizationSettings):
    """The part of :class:`headgate.policy.settings.Settings` about TLS."""

    brokerServicePortTls: int = port_setting(
        -1, "Port of the binary protocol over TLS, 6651 in Pulsar; 0 picks a free one, -1 is none."
    )
    webServicePortTls: int = port_setting(
        -1,
        "Port of the admin API and /metrics over TLS, 8443 in Pulsar; 0 picks a free one, -1 is "
        "none.",
    )
    tlsCertificateFilePath: str = setting(
        "",
        "File with the broker's certificate in PEM, and those of intermediate authorities after "
        "it. The ports of TLS need it.",
    )
    tlsKeyFilePath: str = setting(
        "",
        "File with the private key of that certificate in PEM, without a password. Its owner alone "
        "may read it (mode 0600).",
    )
    headgateTlsSniCertificateFilePaths: str = setting(
        "",
        "Files like tlsCertificateFilePath, with commas between them: a client that asks for a DNS "
        "name of one of them (SNI) gets that certificate, every other client the first one.",
    )
    headgateTlsSniKeyFilePaths: str = setting(
        "",
        "Files like tlsKeyFilePath, with commas between them: the keys of "
        "headgateTlsSniCertificateFilePaths, in the same order.",
    )
    tlsTrustCertsFilePath: str = setting(
        "",
        "File with the certificates in PEM of the authorities whose client certificates are "
        "accepted. Empty: the broker asks no client for a certificate.",
    )
    tlsRequireTrustedClientCertOnConnect: bool = setting(
        False,
        "Refuse clients without a certificate of tlsTrustCertsFilePath. False: a client may send "
        "none, and one of another authority is refused.",
    )
    tlsAllowInsecureConnection: bool = setting(
        False,
        "Not supported: true stops the start, because a client certificate that is not verified "
        "proves nothing.",
    )
    tlsCertRefreshCheckDurationSec: int = setting(
        300,
        "Seconds between two looks at the files above. If one has changed, new connections use the "
        "new content; open ones go on. 0 looks each second.",
    )
    tlsProtocols: str = setting(
        "",
        "Versions of TLS, with commas between them: TLSv1.2 and TLSv1.3 are supported. Empty: "
        "both.",
    )
    tlsCiphers: str = setting(
        "",
        "Cipher suites of TLS 1.2, with commas between them, by OpenSSL's or the IANA's names: "
        "those of Mozilla's intermediate profile are supported. Empty: all of them. TLS 1.3 "
        "always has its own three.",
    )
    webServiceTlsProtocols: str = setting("", "tlsProtocols of the web port; empty: the same.")
    webServiceTlsCiphers: str = setting("", "tlsCiphers of the web port; empty: the same.")
