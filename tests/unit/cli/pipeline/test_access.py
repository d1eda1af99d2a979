"""Credentials of the command line, as format("pulsar") takes them: both sides read them alike."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from headgate.access.client_config import ClientConfig
from headgate.base.errors import InputError
from headgate.cli.pipeline.access import access_of
from headgate.pipeline.access_options import NO_ACCESS, AccessOptions
from pyspark_pulsar.access import Access
from pyspark_pulsar.options import parse_options

ENVIRONMENT = {"T": "s3cret", "P": "u:s3cret"}
URLS = {"service.url": "pulsar+ssl://h:1", "admin.url": "https://h:2", "topic": "t"}
ISSUER = {"issuerUrl": "https://i", "privateKey": "file:///k", "audience": "a", "scope": "s"}


def access(plugin: str, params: str = "", **more: str) -> AccessOptions:
    config = ClientConfig(auth_plugin=plugin, auth_params=params, **more)  # type: ignore[arg-type]
    return access_of(config, ENVIRONMENT, print)


def read_by_spark(options: AccessOptions) -> Access:
    given = URLS | options.source_options(is_tls=True)
    return parse_options(given, ENVIRONMENT).connection.access


@pytest.mark.parametrize(
    ("plugin", "params", "found"),
    [
        ("", "", Access()),
        ("token", "token:s3cret", Access(token="s3cret")),
        ("token", '{"token": "s3cret"}', Access(token="s3cret")),
        ("token", "aa.bb.cc", Access(token="aa.bb.cc")),
        ("token", "env:T", Access(token="s3cret")),
        ("token", "file:///a%20b", Access(token_path="/a b")),
        ("basic", "file:///p", Access(password_path="/p")),
        ("basic", "env:P", Access(password="u:s3cret")),
        ("tls", "tlsCertFile:/c,tlsKeyFile:/k", Access(certificate_path="/c", key_path="/k")),
    ],
)
def test_forms_of_credentials(plugin: str, params: str, found: Access) -> None:
    assert read_by_spark(access(plugin, params)) == found


@pytest.mark.parametrize(
    "params", ["u:p,x", '{"userId": "u", "password": "p,x"}', "userId:u,password:p,x"]
)
def test_a_user_and_a_password(params: str) -> None:
    assert read_by_spark(access("basic", params)).current_password() == ("u", "p,x")


def test_an_issuer() -> None:
    found = read_by_spark(access("oauth2", json.dumps(ISSUER))).flow
    assert found is not None
    assert (found.issuer_url, found.key_path) == ("https://i", "/k")
    assert (found.audience, found.scope, found.trust_path) == ("a", "s", None)
    data = base64.b64encode(b"{}").decode()
    with pytest.raises(InputError, match="the pipeline needs privateKey as file:///PATH"):
        access("oauth2", json.dumps(ISSUER | {"privateKey": f"data:;base64,{data}"}))


def test_a_certificate_beside_a_token_and_alone() -> None:
    pair = {"certificate_path": "/c", "key_path": "/k"}
    both = read_by_spark(access("token", "env:T", **pair))
    assert both == Access(token="s3cret", certificate_path="/c", key_path="/k")
    assert read_by_spark(access("", **pair)) == Access(certificate_path="/c", key_path="/k")


def test_a_file_that_all_may_read_gets_a_warning(tmp_path: Path) -> None:
    path, said = tmp_path / "token", list[str]()
    path.write_text("s3cret")
    path.chmod(0o644)
    config = ClientConfig(auth_plugin="token", auth_params=path.as_uri())
    assert access_of(config, {}, said.append).auth_params == path.as_uri()
    assert said == [f"all users of this machine may read {path}: chmod 600 {path}"]


def test_secrets_stay_where_they_are(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert "s3cret" not in json.dumps(access("token", "env:T").source_options(is_tls=True))
    relative = access("tls", "tlsCertFile:c.pem,tlsKeyFile:k.pem").auth_params
    assert relative == f"tlsCertFile:{tmp_path}/c.pem,tlsKeyFile:{tmp_path}/k.pem"
    assert access_of(ClientConfig(), {}, print) == NO_ACCESS
