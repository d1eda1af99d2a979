"""Which role a client certificate has."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.security.certificate_provider import CertificateProvider
from headgate.security.errors import CredentialsError
from headgate.security.provider import Credentials, Principal

NOW_S = 1_800_000_000.0
"""15 January 2027, 08:00 UTC."""


def certificate(*names: str, **more: Any) -> dict[str, Any]:
    subject = [(("organizationName", "o"),), *(((("commonName", name),)) for name in names)]
    return {"subject": tuple(subject), **more}


def role(found: dict[str, Any] | None) -> Principal:
    return CertificateProvider().principal(Credentials("tls", b"", found), NOW_S)


def test_the_role_is_the_common_name() -> None:
    assert role(certificate("ann", subjectAltName=(("DNS", "host"),))) == Principal("ann")


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ((("IP Address", "10.0.0.1"), ("DNS", "a.example"), ("DNS", "b.example")), "a.example"),
        ((("URI", "spiffe://x/ann"),), "spiffe://x/ann"),
        ((("email", "ann@example.org"),), "ann@example.org"),
    ],
)
def test_without_one_it_is_the_first_alternative_name(others: Any, expected: str) -> None:
    assert role(certificate(subjectAltName=others)).role == expected


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (None, "no certificate"),
        ({}, "no certificate"),
        (certificate("ann", "bob"), "several common names"),
        (certificate(), "no name"),
        (certificate(" "), "no name"),
        (certificate("x" * 2_000), "no name"),
        (certificate(subjectAltName=(("IP Address", "10.0.0.1"),)), "no name"),
        (certificate("ann", notAfter="Jan 15 08:00:00 2027 GMT"), "expired"),
        (certificate("ann", notAfter="soon"), "cannot be read"),
    ],
)
def test_others_are_refused(found: dict[str, Any] | None, why: str) -> None:
    with pytest.raises(CredentialsError, match=why):
        role(found)


def test_it_lapses_with_the_certificate() -> None:
    assert role(certificate("ann", notAfter="Jan 15 08:00:05 2027 GMT")).expires_s == NOW_S + 5
