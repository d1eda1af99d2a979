"""Credentials and TLS for the brokers that a job reads. No Spark here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from headgate.base.errors import InputError


@dataclass(frozen=True, slots=True)
class AccessOptions:
    """One set of credentials and TLS for all brokers, as ``format("pulsar")`` takes it."""

    auth_plugin: str = ""
    """``token``, ``basic``, ``tls`` or ``oauth2``; empty without credentials."""
    auth_params: str = field(default="", repr=False)
    """What ``authParams`` of ``format("pulsar")`` may be."""
    trust_path: str = ""
    """PEM file of the certificate authorities to trust; empty: the public ones."""
    certificate_path: str = ""
    """The client's certificate, beside other credentials; its key is in ``key_path``."""
    key_path: str = ""
    allow_insecure: bool = False
    """Whether any certificate is trusted."""
    verify_hostname: bool = True
    """Whether a certificate must be of the URL's host."""

    def check(self, urls: Sequence[str]) -> None:
        """Raise :class:`InputError` for what has no effect because none of the URLs has TLS."""
        is_for_tls = self.allow_insecure or self.trust_path or self.certificate_path
        if is_for_tls and not any(has_tls(url) for url in urls):
            raise InputError(
                "--tls-trust-cert-path, --tls-allow-insecure and a client's certificate are for "
                "URLs with TLS, and none has it; pulsar+ssl:// and https:// have"
            )

    def source_options(self, *, is_tls: bool) -> dict[str, str]:
        """The options of ``format("pulsar")``; ``is_tls``: a URL of the broker has TLS."""
        options: dict[str, str] = {}
        if self.auth_plugin:
            options |= {"authPluginClassName": self.auth_plugin, "authParams": self.auth_params}
        if not is_tls:
            return options
        for name, path in (
            ("tlsTrustCertsFilePath", self.trust_path),
            ("tlsCertificateFilePath", self.certificate_path),
            ("tlsKeyFilePath", self.key_path),
        ):
            if path:
                options[name] = str(Path(path).resolve())
        if self.allow_insecure:
            options["tlsAllowInsecureConnection"] = "true"
        elif not self.verify_hostname:
            options["tlsHostnameVerificationEnable"] = "false"
        return options


NO_ACCESS: Final = AccessOptions()
"""No credentials; public certificate authorities."""


def has_tls(url: str) -> bool:
    """Whether the URL's connections have TLS."""
    return url.startswith(("pulsar+ssl:", "https:"))
