"""How strict TLS is, and its failures in words."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from headgate.access.tls import client_context, tls_failure
from headgate.base.errors import InputError


def test_how_strict_connections_are() -> None:
    def modes(**options: bool) -> tuple[ssl.VerifyMode, bool]:
        context = client_context("", "--x", **options)
        return context.verify_mode, context.check_hostname

    assert modes() == (ssl.CERT_REQUIRED, True)
    assert modes(verify_hostname=False) == (ssl.CERT_REQUIRED, False)
    assert modes(allow_insecure=True) == (ssl.CERT_NONE, False)


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    path = tmp_path / "x.pem"
    with pytest.raises(InputError, match=f"^--x {path} cannot be used: No such file"):
        client_context(str(path), "--x")
    path.write_text("no certificate")
    with pytest.raises(InputError, match=f"^--x {path} cannot be used: it is no PEM file"):
        client_context(str(path), "--x")
    with pytest.raises(InputError, match=f"certificate {path} with the key {path} cannot be used"):
        client_context("", "--x", certificate=(str(path), str(path)))


def test_failures_in_words() -> None:
    untrusted = ssl.SSLCertVerificationError(1, "verify failed")
    untrusted.verify_message = "self-signed certificate"
    told = tls_failure(untrusted, "--x")
    assert told.startswith("its certificate is not trusted: self-signed certificate (--x names")
    plain = ssl.SSLError(1, "x")
    plain.reason = "WRONG_VERSION_NUMBER"
    assert tls_failure(plain, "--x") == "it does not speak TLS; did you mean http://?"
    assert tls_failure(ssl.SSLEOFError(8, "x"), "--x").startswith("no TLS connection (")
    assert tls_failure(OSError(), "--x") == ""


def test_certificates_and_host_names_are_checked_by_default() -> None:
    context = client_context("", "trustCertsFilePath")
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
