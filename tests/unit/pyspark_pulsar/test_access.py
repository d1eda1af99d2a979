from __future__ import annotations

import ssl
from pathlib import Path

import pytest
import urllib3

from pyspark_pulsar.access import Access, credentials, tls_refusal
from pyspark_pulsar.errors import AccessError
from pyspark_pulsar.oauth2 import OAuth2

JAVA = "org.apache.pulsar.client.impl.auth.Authentication"


@pytest.mark.parametrize(
    ("plugin", "params", "found"),
    [
        ("token", "token:a.b.c", {"token": "a.b.c"}),
        (f"{JAVA}Token", "file:///run/secrets/t%20o", {"token_path": "/run/secrets/t o"}),
        (f"{JAVA}Token", "file:/run/t", {"token_path": "/run/t"}),
        ("token", "env:T", {"token": "d.e.f"}),
        ("basic", "u:p:x", {"password": "u:p:x"}),
        (f"{JAVA}Basic", "file:///run/p", {"password_path": "/run/p"}),
        ("basic", "env:P", {"password": "u:p"}),
        (
            "org.apache.pulsar.client.impl.auth.oauth2.AuthenticationOAuth2",
            '{"issuerUrl": "https://i", "privateKey": "file:///k.json", "audience": "a"}',
            {"flow": OAuth2("https://i", "/k.json", audience="a")},
        ),
        (
            f"{JAVA}Tls",
            "tlsKeyFile:/k.pem,tlsCertFile:/c.pem",
            {"certificate_path": "/c.pem", "key_path": "/k.pem"},
        ),
    ],
)
def test_credentials_are_read_from_both_plugins(
    plugin: str, params: str, found: dict[str, str]
) -> None:
    assert credentials(plugin, params, {"T": "d.e.f\n", "P": "u:p"}) == found


@pytest.mark.parametrize(
    ("plugin", "params"),
    [
        ("token", "s3cret"),
        ("token", "file://host/s3cret"),
        ("token", "tokens:s3cret"),
        ("tls", "token:s3cret"),
        ("tls", "tlsCertFile:/s3cret"),
        ("tls", "tlsCertFile:/c,tlsKeyFile:"),
        ("token", "env:NONE"),
        ("token", "env:SPACES"),
        ("basic", "s3cret"),
        ("basic", ":s3cret"),
        ("basic", '{"userId": "u", "pass": "s3cret"}'),
        ("basic", "{s3cret"),
        ("basic", "env:SPACES"),
        ("oauth2", "s3cret"),
        ("oauth2", '{"issuerUrl": "http://i", "privateKey": "/k"}'),
        ("oauth2", '{"issuerUrl": "https://i", "privateKey": "data:s3cret"}'),
        ("sasl", "token:s3cret"),
    ],
)
def test_other_credentials_are_refused_without_naming_them(plugin: str, params: str) -> None:
    with pytest.raises(ValueError, match="authP") as caught:
        credentials(plugin, params, {"SPACES": "two s3cret"})
    assert "s3cret" not in str(caught.value)


def test_a_token_file_is_read_for_each_request(tmp_path: Path) -> None:
    path = tmp_path / "token"
    access = Access(token_path=str(path))
    for text, token in (("one\n", "one"), ("  two ", "two")):
        path.write_text(text)
        assert access.current_token() == token
        assert access.headers() == {"Authorization": f"Bearer {token}"}
    assert Access().headers() == {}


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "it is empty"),
        (b"two words", "it has spaces"),
        (b"\xff\xfe", "it is not text"),
        (None, "No such file"),
    ],
)
def test_a_token_file_without_a_token(tmp_path: Path, content: bytes | None, why: str) -> None:
    path = tmp_path / "token"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(AccessError, match=why) as caught:
        Access(token_path=str(path)).check_files()
    assert str(path) in str(caught.value)
    assert "words" not in str(caught.value)


def test_a_user_and_a_password(tmp_path: Path) -> None:
    path = tmp_path / "password"
    by_value, by_file = Access(password="u:p:x"), Access(password_path=str(path))
    path.write_text(' {"userId": "u", "password": "p:x"}\n')
    for access in (by_value, by_file):
        assert access.current_password() == ("u", "p:x")
        assert access.presented() == ("basic", "u:p:x")
        assert access.headers() == {"Authorization": "Basic dTpwOng="}
        assert access.scrubbed("no p:x") == "no ***"
        assert access.scrubbed("no Basic dTpwOng=") == "no Basic ***"
        assert access.advice().startswith("check the user and password")
    path.write_text("s3cret")
    with pytest.raises(AccessError, match="does not hold USER:PASSWORD") as caught:
        by_file.check_files()
    assert "s3cret" not in f"{caught.value} {Access(password='u:s3cret')!r}"


def test_what_connect_says() -> None:
    assert Access().presented() == ("", "")
    certificate = Access(certificate_path="/c", key_path="/k")
    assert certificate.presented() == ("tls", "")
    assert Access(token="t", certificate_path="/c", key_path="/k").presented() == ("token", "t")


def test_a_token_of_an_issuer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark_pulsar.access.current_token", lambda flow: flow.issuer_url[-1])
    access = Access(flow=OAuth2("https://i", "/k"))
    assert access.headers() == {"Authorization": "Bearer i"}
    assert access.advice().startswith("check what the token of https://i")


def test_no_text_contains_the_token(tmp_path: Path) -> None:
    access = Access(token="s3cret")
    assert "s3cret" not in repr(access)
    assert access.scrubbed("what is s3cret?") == "what is ***?"
    assert Access(token="S3c.x").scrubbed("at s3c.x:1 or S3cyx") == "at ***:1 or S3cyx"
    assert Access().scrubbed("what?") == "what?"
    assert Access(token_path=str(tmp_path / "none")).scrubbed("what?") == "what?"


def test_unusable_certificates_are_named(tmp_path: Path) -> None:
    path = tmp_path / "ca.pem"
    for access, why in (
        (Access(trust_path=str(path)), "tlsTrustCertsFilePath .*ca.pem cannot be used: No such"),
        (
            Access(certificate_path=str(path), key_path="/k"),
            "certificate .*ca.pem .tlsCertFile. and the key",
        ),
    ):
        with pytest.raises(AccessError, match=why):
            access.check_files()
    path.write_text("no certificate")
    with pytest.raises(AccessError, match="OpenSSL cannot read it"):
        Access(trust_path=str(path)).check_files()


def test_how_strict_connections_are() -> None:
    strict = Access().ssl_context()
    assert (strict.verify_mode, strict.check_hostname) == (ssl.CERT_REQUIRED, True)
    any_host = Access(verify_hostname=False).ssl_context()
    assert (any_host.verify_mode, any_host.check_hostname) == (ssl.CERT_REQUIRED, False)
    anybody = Access(allow_insecure=True).ssl_context()
    assert (anybody.verify_mode, anybody.check_hostname) == (ssl.CERT_NONE, False)


@pytest.mark.parametrize(
    ("access", "words"),
    [
        (Access(), "set the options authPluginClassName and authParams"),
        (Access(token="s3cret"), "check the token in authParams"),
        (Access(token_path="/t"), "check the token in /t"),
        (Access(certificate_path="/c", key_path="/k"), "check the certificate /c"),
    ],
)
def test_advice_fits_the_access(access: Access, words: str) -> None:
    assert access.advice().startswith(words)


def test_permanent_tls_failures_are_recognized() -> None:
    untrusted = ssl.SSLCertVerificationError(1, "verify failed")
    untrusted.verify_message = "self-signed certificate"
    told = tls_refusal(urllib3.exceptions.SSLError(untrusted))
    assert told is not None
    assert told.startswith("its certificate is not trusted: self-signed certificate (tlsTrust")
    assert tls_refusal(urllib3.exceptions.SSLError(ssl.SSLEOFError(8, "EOF"))) is None
    assert tls_refusal(urllib3.exceptions.ProtocolError("gone", ConnectionResetError())) is None
