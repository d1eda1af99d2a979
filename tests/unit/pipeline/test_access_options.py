"""Credentials and TLS as options of format("pulsar")."""

from __future__ import annotations

import pytest

from headgate.base.errors import InputError
from headgate.pipeline.access_options import NO_ACCESS, AccessOptions, has_tls


def test_options_of_tls_are_for_tls() -> None:
    full = AccessOptions(
        "basic", "env:P", trust_path="/ca.pem", certificate_path="/c.pem", key_path="/k.pem",
        verify_hostname=False,
    )  # fmt: skip
    credentials = {"authPluginClassName": "basic", "authParams": "env:P"}
    assert full.source_options(is_tls=False) == credentials
    assert full.source_options(is_tls=True) == credentials | {
        "tlsTrustCertsFilePath": "/ca.pem",
        "tlsCertificateFilePath": "/c.pem",
        "tlsKeyFilePath": "/k.pem",
        "tlsHostnameVerificationEnable": "false",
    }
    anybody = AccessOptions(allow_insecure=True, verify_hostname=False)
    assert anybody.source_options(is_tls=True) == {"tlsAllowInsecureConnection": "true"}
    assert NO_ACCESS.source_options(is_tls=True) == {}


def test_tls_that_no_url_has() -> None:
    for access in (
        AccessOptions(trust_path="/ca.pem"),
        AccessOptions(allow_insecure=True),
        AccessOptions(certificate_path="/c.pem"),
    ):
        access.check(["http://a", "pulsar+ssl://a"])
        with pytest.raises(InputError, match="none has it"):
            access.check(["http://a", "pulsar://a"])
    NO_ACCESS.check([])
    assert has_tls("https://a")
    assert not has_tls("http://a")


def test_no_text_has_the_credentials() -> None:
    assert "s3cret" not in repr(AccessOptions("token", "token:s3cret"))
