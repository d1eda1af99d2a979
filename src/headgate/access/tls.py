"""TLS of a command's connections, and sentences on its failures."""

from __future__ import annotations

import ssl
from typing import Final

from headgate.base.errors import InputError

_REASONS: Final = {
    "WRONG_VERSION_NUMBER": "it does not speak TLS; did you mean http://?",
    "HTTP_REQUEST": "it does not speak TLS; did you mean http://?",
    "RECORD_LAYER_FAILURE": "it does not speak TLS; did you mean http://?",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "it asks for a client certificate (--auth-plugin tls)",
    "TLSV1_ALERT_UNKNOWN_CA": "it does not trust the client's certificate",
    "SSLV3_ALERT_BAD_CERTIFICATE": "it does not trust the client's certificate",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "the client's certificate has expired",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "it does not trust the client's certificate",
    "SSLV3_ALERT_HANDSHAKE_FAILURE": "it asks for a client certificate, or for other ciphers",
}
"""OpenSSL's reasons, in words."""


def client_context(
    trust_path: str,
    what: str,
    *,
    certificate: tuple[str, str] = ("", ""),
    allow_insecure: bool = False,
    verify_hostname: bool = True,
) -> ssl.SSLContext:
    """The context of connections.

    Args:
        trust_path: PEM file of the authorities to trust; the public ones if empty.
        what: names ``trust_path`` in errors.
        certificate: the client's, and its key: two PEM files, or two empty texts.
        allow_insecure: whether any certificate is trusted.
        verify_hostname: whether it must be of the URL's host.

    Raises:
        InputError: a file cannot be used.
    """
    try:
        context = ssl.create_default_context(cafile=trust_path or None)
    except OSError as error:
        raise InputError(f"{what} {trust_path} cannot be used: {_why(error)}") from error
    context.check_hostname = verify_hostname and not allow_insecure
    if allow_insecure:
        context.verify_mode = ssl.CERT_NONE
    if certificate[0]:
        try:
            # Without a password given, OpenSSL would ask for one on the terminal.
            context.load_cert_chain(*certificate, password="")
        except OSError as error:
            raise InputError(
                f"the client's certificate {certificate[0]} with the key {certificate[1]} cannot "
                f"be used: {_why(error)}"
            ) from error
    return context


def tls_failure(error: BaseException, trust: str) -> str:
    """What is wrong, in words; empty if it is no failure of TLS. ``trust`` names the option or key
    of the authorities to trust."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            f"its certificate is not trusted: {error.verify_message} ({trust} names the file of "
            "the authority to trust)"
        )
    if isinstance(error, ssl.SSLError):
        reason = getattr(error, "reason", None) or ""
        return _REASONS.get(reason, f"no TLS connection ({reason or type(error).__name__})")
    return ""


def _why(error: OSError) -> str:
    if isinstance(error, ssl.SSLError):
        return f"it is no PEM file of that kind, or has a password ({error.reason or 'no PEM'})"
    return error.strerror or str(error)
