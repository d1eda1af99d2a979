"""Authentication by TLS client certificates, as Pulsar's ``AuthenticationProviderTls``.

The role is the common name of the certificate's subject. A certificate without one has the first
DNS name, URI (of SPIFFE, say) or mail address among its alternative names. TLS has verified the
certificate before; here only its dates are looked at once more, since a connection may outlive
them.
"""

from __future__ import annotations

from collections.abc import Mapping
from ssl import cert_time_to_seconds
from typing import Any, Final

from headgate.security.errors import CredentialsError
from headgate.security.provider import Credentials, Principal, is_role

_ROLE_KINDS: Final = ("DNS", "URI", "email")


class CertificateProvider:
    """Takes the certificate of the client's own end of the TLS connection."""

    def __init__(self) -> None:
        self.method = "tls"

    def principal(self, credentials: Credentials, now_s: float) -> Principal:
        certificate = credentials.certificate
        if not certificate:
            raise CredentialsError("the client presented no certificate that TLS verified")
        expires_s = _instant(certificate, "notAfter")
        if expires_s is not None and now_s >= expires_s:
            raise CredentialsError(f"the certificate expired {now_s - expires_s:,.0f} s ago")
        return Principal(_role(certificate), expires_s)


def _role(certificate: Mapping[str, Any]) -> str:
    names = [
        value
        for part in certificate.get("subject", ())
        for key, value in part
        if key == "commonName"
    ]
    if len(names) > 1:
        raise CredentialsError("the certificate has several common names: which is the role?")
    if not names:
        others = certificate.get("subjectAltName", ())
        names = [value for kind, value in others if kind in _ROLE_KINDS][:1]
    if not names or not is_role(str(names[0])):
        raise CredentialsError("the certificate has no name that is a role")
    return str(names[0])


def _instant(certificate: Mapping[str, Any], field: str) -> float | None:
    text = certificate.get(field)
    if text is None:
        return None
    try:
        return float(cert_time_to_seconds(text))
    except ValueError:
        raise CredentialsError(f"the date {field} of the certificate cannot be read") from None
