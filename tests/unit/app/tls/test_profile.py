"""Versions and ciphers: Mozilla's intermediate profile, of which settings may leave parts out."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from headgate.app.tls.hello import ClientHello, read_hello
from headgate.app.tls.profile import (
    CIPHERS,
    CIPHERS_OF_TLS_1_3,
    GROUPS,
    NO_COMPRESSED_CERTIFICATES,
    Profile,
    binary_profile,
    web_profile,
)
from headgate.base.errors import InputError
from headgate.policy.settings import Settings
from tests.trial_certificates import Trial, write
from tests.unit.app.tls.test_client_chains import Pair
from tests.unit.app.tls.test_hello import client_hello


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
    assert context.options & NO_COMPRESSED_CERTIFICATES, "they hold much in few bytes"
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


OLD, NEW = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
CURVES = ["X25519", "prime256v1", "secp384r1"]
COSTLY = ["ffdhe2048", "ffdhe8192"]


def server_for(trial: Trial, client: ssl.SSLContext) -> ssl.SSLContext:
    """The context that a client gets, filled as for a port."""
    contexts = Profile().new_contexts()
    for context in contexts.all:
        context.load_cert_chain(trial.folder / "server.cert.pem", trial.folder / "server.key.pem")
        context.load_verify_locations(trial.ca)
        context.verify_mode = ssl.CERT_OPTIONAL
    return contexts.of(read_hello(client_hello(context=client)))


@pytest.mark.parametrize(
    ("group", "version"),
    # With TLS 1.2 a client must also support the curve of the server's certificate.
    [*((group, NEW) for group in ("", *CURVES)), ("", OLD), ("prime256v1", OLD)],
)
def test_a_handshake_takes_the_group_of_its_client(
    tmp_path: Path, group: str, version: ssl.TLSVersion
) -> None:
    """It does not ask for another one, which would take one more message each way."""
    trial = Trial(tmp_path)
    client = trial.context("admin")
    client.maximum_version = version
    if group:
        client.set_ecdh_curve(group)
    pair = Pair(server_for(trial, client), client)
    for end in (pair.client, pair.server):
        with pytest.raises(ssl.SSLWantReadError):
            end.do_handshake()
    if version == NEW:
        pair.client.do_handshake()
        pair.server.do_handshake()
    pair.shake_hands()
    assert pair.server.version() == ("TLSv1.3" if version == NEW else "TLSv1.2")
    assert pair.server.getpeercert()


@pytest.mark.parametrize("group", COSTLY)
def test_no_handshake_takes_a_group_whose_exchange_is_costly(tmp_path: Path, group: str) -> None:
    trial = Trial(tmp_path)
    client = trial.context()
    client.set_ecdh_curve(group)
    for hello in (read_hello(client_hello(context=client)), ClientHello()):
        context = Profile().new_contexts().of(hello)
        context.load_cert_chain(trial.folder / "server.cert.pem", trial.folder / "server.key.pem")
        pair = Pair(context, client)
        with pytest.raises(ssl.SSLWantReadError):
            pair.client.do_handshake()
        with pytest.raises(ssl.SSLError, match="NO_SUITABLE_"):
            pair.server.do_handshake()


@pytest.mark.parametrize("version", [OLD, NEW])
def test_the_key_of_a_clients_certificate_is_on_another_curve(
    tmp_path: Path, version: ssl.TLSVersion
) -> None:
    """With TLS 1.2 OpenSSL wants it on one that the server supports, too."""
    trial = Trial(tmp_path)
    now = datetime.now(UTC)
    made = trial.authority.client(
        "other", now, 90, lambda: ec.generate_private_key(ec.SECP384R1()), x509.random_serial_number
    )
    write(tmp_path, "client-other", made)
    client = trial.context("other")
    client.maximum_version = version
    pair = Pair(server_for(trial, client), client)
    pair.shake_hands()
    assert pair.server.getpeercert()


def test_who_cannot_be_read_gets_what_every_client_has() -> None:
    contexts = Profile().new_contexts()
    assert contexts.before_1_3 is not None
    assert contexts.of(ClientHello()) is contexts.by_group[23]
    assert contexts.of(ClientHello(groups=(256, 24, 29))) is contexts.by_group[24]
    assert contexts.of(ClientHello(has_tls_1_3=False, groups=(29,))) is contexts.before_1_3
    assert contexts.before_1_3.maximum_version == OLD
    old, new = Profile(highest=OLD).new_contexts(), Profile(lowest=NEW).new_contexts()
    assert old.all == (old.before_1_3,) == (old.of(ClientHello()),)
    assert new.all == tuple(new.by_group.values())
    assert new.of(ClientHello(has_tls_1_3=False)) is new.by_group[23]
    assert list(new.by_group) == list(GROUPS)
