"""Credentials in the forms of Pulsar's clients, and what a request carries for each."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from headgate.access.authentication import (
    SECRET_BYTES_MAX,
    Authentication,
    authentication,
    certificate_paths,
    plugin_kind,
    secret_file,
    user_and_password,
)
from headgate.access.client_config import ClientConfig
from headgate.base.errors import InputError

JAVA = "org.apache.pulsar.client.impl.auth."
ENVIRONMENT = {"T": " s3cret.t \n", "P": "u:s3cret", "EMPTY": ""}


def made(plugin: str, params: str = "", said: list[str] | None = None) -> Authentication:
    config = ClientConfig(auth_plugin=plugin, auth_params=params, auth_origin="--auth-params")
    return authentication(config, ENVIRONMENT, (said if said is not None else []).append)


def bearer(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}


def basic(text: str) -> dict[str, str]:
    return {"Authorization": f"Basic {base64.b64encode(text.encode()).decode()}"}


@pytest.mark.parametrize(
    ("plugin", "params", "headers", "is_literal"),
    [
        ("token", "token:s3cret", bearer("s3cret"), True),
        ("token", "token: s3cret ", bearer("s3cret"), True),
        (f"{JAVA}AuthenticationToken", "aaa.s3cret.c-_", bearer("aaa.s3cret.c-_"), True),
        ("token", '{"token": "s3cret"}', bearer("s3cret"), True),
        ("token", "env:T", bearer("s3cret.t"), False),
        ("basic", "u:s3cret:x", basic("u:s3cret:x"), True),
        ("basic", '{"userId": "u", "password": "s3cret"}', basic("u:s3cret"), True),
        ("basic", '{"username": "u", "password": "s3cret"}', basic("u:s3cret"), True),
        ("basic", "userId:u,password:s3cret,1", basic("u:s3cret,1"), True),
        (f"{JAVA}AuthenticationBasic", "env:P", basic("u:s3cret"), False),
        ("tls", "tlsCertFile:/c.pem,tlsKeyFile:/k.pem", {}, False),
        ("", "", {}, False),
    ],
)
def test_what_is_sent(plugin: str, params: str, headers: dict[str, str], is_literal: bool) -> None:
    found = made(plugin, params)
    assert found.headers() == headers
    assert found.is_literal is is_literal
    assert "s3cret" not in f"{found!r} {found.description}"
    sent = " ".join(headers.values())
    assert all(secret in f"{sent} u:s3cret:x s3cret,1" for secret in found.secrets())
    assert bool(found.secrets()) is bool(headers)


@pytest.mark.parametrize(
    ("plugin", "params", "text"),
    [
        ("token", "", "authParams of a token must be file:///PATH, env:NAME or token:TOKEN"),
        ("token", "s3cret", "authParams of a token must be"),
        ("token", "token:s3cret two", "authParams of a token must be"),
        ("token", '{"tokens": "s3cret"}', "authParams of a token must be"),
        ("token", "file://host/x", "names no file of this machine"),
        ("basic", "s3cret", "NAME:PASSWORD or"),
        ("basic", ":s3cret", "NAME:PASSWORD or"),
        ("basic", '{"userId": "u"}', "NAME:PASSWORD or"),
        ("basic", '{"userId": "a:b", "password": "s3cret"}', "NAME:PASSWORD or"),
        ("tls", "tlsCertFile:/s3cret", "authParams of a certificate must be tlsCertFile:PATH,tls"),
        ("tls", "", "authParams of a certificate must be"),
        ("oauth2", "{}", "authParams of oauth2 must be"),
        ("oauth2", "s3cret", "authParams of oauth2 must be"),
        ("oauth2", '{"issuerUrl": "http://h", "privateKey": "/k"}', "'http://h' is no https URL"),
        ("oauth2", '{"issuerUrl": "https://h", "privateKey": "data:x"}', "privateKey is no data:"),
        ("sasl", "s3cret", "authPlugin 'sasl': token, basic, tls, oauth2 or Pulsar's class"),
        ("", "s3cret", "--auth-params: --auth-plugin says what it is, such as token"),
    ],
)
def test_other_forms_are_refused_without_repeating_them(
    plugin: str, params: str, text: str
) -> None:
    with pytest.raises(InputError) as caught:
        certificate_paths(ClientConfig(auth_plugin=plugin, auth_params=params)) if (
            plugin == "tls"
        ) else made(plugin, params)
    assert text in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_a_file_is_read_for_each_request(tmp_path: Path) -> None:
    path = tmp_path / "to ken"
    said: list[str] = []
    found = made("token", f"file://{tmp_path}/to%20ken", said)
    assert found.description == f"the token in {path}"
    with pytest.raises(InputError, match="cannot be read: No such file"):
        found.headers()
    for text in ("one\n", " two"):
        path.write_text(text)
        path.chmod(0o600)
        assert found.headers() == bearer(text.strip())
    assert said == []
    path.write_text("two words")
    with pytest.raises(InputError, match="to ken is no token: it has spaces"):
        found.headers()
    path.write_text("u:p\n")
    assert made("basic", path.as_uri()).headers() == basic("u:p")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "it has 0 bytes"),
        (b" \n", "it has 2 bytes"),
        (b"\xff\xfe", "it is no text"),
        (b"x" * (SECRET_BYTES_MAX + 1), "it has 65,537 bytes"),
    ],
)
def test_files_without_a_secret(tmp_path: Path, data: bytes, why: str) -> None:
    path = tmp_path / "s"
    path.write_bytes(data)
    with pytest.raises(InputError, match=f"s holds no credentials: {why}"):
        secret_file(str(path), print)


def test_a_file_that_all_may_read_gets_a_warning(tmp_path: Path) -> None:
    said: list[str] = []
    path = tmp_path / "s"
    path.write_text("s3cret")
    for mode in (0o600, 0o640, 0o644):
        path.chmod(mode)
        assert secret_file(str(path), said.append) == "s3cret"
    assert said == [f"all users of this machine may read {path}: chmod 600 {path}"]


def test_a_variable_that_is_not_set() -> None:
    for name in ("EMPTY", "NONE"):
        with pytest.raises(InputError, match=f"the variable {name} has no credentials"):
            made("token", f"env:{name}").headers()


def test_certificates() -> None:
    pair = ("/c.pem", "/k.pem")
    own = ClientConfig(certificate_path="/c.pem", key_path="/k.pem")
    assert certificate_paths(own) == pair
    assert authentication(own, {}, print).description == "the certificate /c.pem"
    for params in (
        "tlsKeyFile:/k.pem, tlsCertFile:/c.pem",
        json.dumps({"tlsCertFile": "/c.pem", "tlsKeyFile": "/k.pem"}),
    ):
        config = ClientConfig(auth_plugin=f"{JAVA}AuthenticationTls", auth_params=params)
        assert certificate_paths(config) == pair
    by_plugin = ClientConfig(auth_plugin="tls", certificate_path="/c.pem", key_path="/k.pem")
    assert certificate_paths(by_plugin) == pair
    assert certificate_paths(ClientConfig(auth_plugin="token")) == ("", "")


def test_oauth2_has_its_key_in_a_file_or_in_itself(tmp_path: Path) -> None:
    key = json.dumps({"client_id": "c", "client_secret": "s3cret"})
    path = tmp_path / "key.json"
    path.write_text(key)
    data = base64.b64encode(key.encode()).decode()
    by_file = made("oauth2", json.dumps({"issuerUrl": "https://h/", "privateKey": path.as_uri()}))
    by_data = made(
        f"{JAVA}oauth2.AuthenticationOAuth2",
        json.dumps(
            {"issuerUrl": "https://h", "privateKey": f"data:application/json;base64,{data}"}
        ),
    )
    assert (by_file.is_literal, by_data.is_literal) == (False, True)
    assert by_file.description == "the token of https://h/"
    assert "s3cret" not in f"{by_file!r} {by_data!r}"
    assert by_file.secrets() == []


def test_names_of_plugins() -> None:
    assert plugin_kind(f"{JAVA}oauth2.AuthenticationOAuth2") == plugin_kind("oauth2") == "oauth2"
    assert user_and_password("u:", "x") == ("u", "")
