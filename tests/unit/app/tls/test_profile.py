"""Versions and ciphers: Mozilla's intermediate profile, of which settings may leave parts out."""

from __future__ import annotations

import ssl

import pytest

from headgate.app.tls.profile import (
    CIPHERS,
    CIPHERS_OF_TLS_1_3,
    Profile,
    binary_profile,
    web_profile,
)
from headgate.base.errors import InputError
from headgate.policy.settings import Settings


def test_the_defaults_are_the_profile() -> None:
    context = binary_profile(Settings()).new_context()
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2
    assert context.maximum_version == ssl.TLSVersion.TLSv1_3
    names = [each["name"] for each in context.get_ciphers()]
    assert set(names) == {*CIPHERS, *CIPHERS_OF_TLS_1_3}
    assert context.num_tickets == 0
    for option in (ssl.OP_NO_RENEGOTIATION, ssl.OP_NO_TICKET, ssl.OP_NO_COMPRESSION):
        assert context.options & option
    assert not context.options & ssl.OP_CIPHER_SERVER_PREFERENCE
    assert context.verify_mode == ssl.CERT_NONE


def test_settings_leave_parts_out() -> None:
    settings = Settings(
        tlsProtocols="TLSv1.3, TLSv1.2",
        tlsCiphers="TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,ECDHE-RSA-AES256-GCM-SHA384, "
        "TLS_AES_128_GCM_SHA256",
    )
    profile = binary_profile(settings)
    assert profile == Profile(ciphers=("ECDHE-RSA-AES256-GCM-SHA384",))
    old = [each["name"] for each in profile.new_context().get_ciphers()]
    assert [name for name in old if name in CIPHERS] == ["ECDHE-RSA-AES256-GCM-SHA384"]
    assert web_profile(settings) == profile
    settings.webServiceTlsProtocols = "TLSv1.3"
    settings.webServiceTlsCiphers = "TLS_AES_128_GCM_SHA256"
    web = web_profile(settings)
    assert (web.lowest, web.highest) == (ssl.TLSVersion.TLSv1_3, ssl.TLSVersion.TLSv1_3)
    web.new_context()
    assert binary_profile(settings) == profile


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"tlsProtocols": "TLSv1.1"}, r"tlsProtocols: 'TLSv1\.1' is not allowed; use TLSv1\.2 and"),
        ({"tlsCiphers": "RC4-SHA"}, "tlsCiphers: 'RC4-SHA' is not allowed; use some of ECDHE-"),
        ({"tlsCiphers": "TLS_AES_128_GCM_SHA256"}, "tlsCiphers has no cipher of TLS 1.2"),
        ({"webServiceTlsProtocols": "SSLv3"}, "webServiceTlsProtocols: 'SSLv3' is not allowed"),
    ],
)
def test_weak_and_unknown_ones_are_refused(values: dict[str, str], text: str) -> None:
    settings = Settings(**values)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=text):
        (binary_profile(settings), web_profile(settings))
