"""Options come before the environment, the environment before a file or a profile."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.access.client_config import ADMIN_URL, ClientConfig
from headgate.base.errors import InputError
from headgate.cli.connection.sources import (
    CLIENT_CONF_BYTES_MAX,
    GivenOptions,
    client_config,
    profiles_path,
    warn_of_open_tls,
)

CONF = """
# Pulsar's own comments
webServiceUrl = https://b:8443/
brokerServiceUrl=pulsar+ssl://b:6651/
authPlugin=org.apache.pulsar.client.impl.auth.AuthenticationToken
authParams=file:///run/\\
    token
tlsEnableHostnameVerification=false
tlsTrustCertsFilePath=/ca.pem
tlsKeyStorePassword=x
"""
FROM_FILE = "file:///run/token"


@pytest.fixture
def conf(tmp_path: Path) -> str:
    path = tmp_path / "client.conf"
    path.write_text(CONF)
    return str(path)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    path = tmp_path / "headgate" / "profiles.toml"
    path.parent.mkdir()
    path.write_text(
        '[prod]\nwebServiceUrl = "https://p:8443"\nauthPlugin = "token"\n'
        'authParams = "env:PROD"\ntlsEnableHostnameVerification = false\n[test]\n'
        '[typo]\nauthparams = "token:s3cret"\n[number]\nwebServiceUrl = 8080\n'
    )
    path.chmod(0o600)
    return tmp_path


def found(
    given: GivenOptions | None = None, said: list[str] | None = None, **environment: str
) -> ClientConfig:
    say = ([] if said is None else said).append
    return client_config(given or GivenOptions(), environment, say)


def test_without_any_source_the_defaults_count() -> None:
    assert found() == ClientConfig()
    assert found(PULSAR_CLIENT_CONF="", HEADGATE_PROFILE="", HEADGATE_TOKEN="") == ClientConfig()


def test_a_file_is_read_as_pulsar_admin_reads_it(conf: str) -> None:
    expected = ClientConfig(
        admin_url="https://b:8443/",
        broker_url="pulsar+ssl://b:6651/",
        auth_plugin="org.apache.pulsar.client.impl.auth.AuthenticationToken",
        auth_params=FROM_FILE,
        trust_path="/ca.pem",
        verify_hostname=False,
        url_origin=f"webServiceUrl in {conf}",
        auth_origin=f"authParams in {conf}",
    )
    assert found(GivenOptions(config_path=conf)) == expected
    assert found(PULSAR_CLIENT_CONF=conf) == expected


def test_an_option_replaces_one_value(conf: str) -> None:
    given = GivenOptions(
        admin_url="http://o:1",
        config_path=conf,
        auth_params="file:///other",
        trust_path="/o.pem",
        verify_hostname=True,
        allow_insecure=True,
    )
    config = found(given, HEADGATE_TOKEN="s3cret")
    assert (config.admin_url, config.url_origin) == ("http://o:1", "--admin-url")
    assert (config.auth_params, config.auth_origin) == ("file:///other", "--auth-params")
    assert config.auth_plugin.endswith("AuthenticationToken")
    assert (config.trust_path, config.verify_hostname, config.allow_insecure) == (
        "/o.pem", True, True
    )  # fmt: skip
    assert config.broker_url == "pulsar+ssl://b:6651/"


def test_a_token_of_the_environment_replaces_that_of_a_file(conf: str) -> None:
    config = found(PULSAR_CLIENT_CONF=conf, HEADGATE_TOKEN="s3cret")
    assert (config.auth_plugin, config.auth_params) == ("token", "env:HEADGATE_TOKEN")
    assert config.admin_url == "https://b:8443/"
    assert "s3cret" not in repr(config)


def test_a_file_that_an_option_names_keeps_its_credentials(conf: str, home: Path) -> None:
    config = found(GivenOptions(config_path=conf), HEADGATE_TOKEN="s3cret")
    assert config.auth_params == FROM_FILE
    variables = {"XDG_CONFIG_HOME": str(home), "PROD": "x", "HEADGATE_TOKEN": "s3cret"}
    assert found(GivenOptions(profile="prod"), **variables).auth_params == "env:PROD"
    assert found(GivenOptions(profile="test"), **variables).auth_params == "env:HEADGATE_TOKEN"


def test_a_token_file_is_short_for_two_options(conf: str) -> None:
    config = found(GivenOptions(config_path=conf, token_path="/run/a b"), HEADGATE_TOKEN="x")
    assert (config.auth_plugin, config.auth_params) == ("token", "file:///run/a%20b")
    for other in ({"auth_plugin": "token"}, {"auth_params": "token:x"}):
        with pytest.raises(InputError, match="leave one of the two forms out"):
            found(GivenOptions(token_path="/t", **other))


def test_a_profile_has_the_keys_of_client_conf(home: Path) -> None:
    variables = {"XDG_CONFIG_HOME": str(home), "PROD": "s3cret"}
    config = found(GivenOptions(profile="prod"), **variables)
    assert config == found(HEADGATE_PROFILE="prod", **variables)
    assert (config.admin_url, config.auth_params) == ("https://p:8443", "env:PROD")
    assert (config.verify_hostname, config.auth_origin) == (False, "authParams in profile prod")
    assert found(GivenOptions(profile="test"), **variables).admin_url == ADMIN_URL


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pord", "there is no profile 'pord' in .*; did you mean prod.* .it has: number, prod, "),
        ("typo", r"profile typo: there is no key 'authparams'; did you mean authParams"),
        ("number", "profile number: webServiceUrl: a text in quotes, true or false is allowed"),
    ],
)
def test_profiles_that_cannot_be(home: Path, name: str, text: str) -> None:
    with pytest.raises(InputError, match=text) as caught:
        found(GivenOptions(profile=name), XDG_CONFIG_HOME=str(home))
    assert "s3cret" not in str(caught.value)


def test_a_file_of_profiles_is_its_owners(home: Path) -> None:
    path = home / "headgate" / "profiles.toml"
    for mode in (0o640, 0o604, 0o620):
        path.chmod(mode)
        with pytest.raises(InputError, match=f"mode {mode:04o}.: chmod 600 {path}"):
            found(GivenOptions(profile="prod"), XDG_CONFIG_HOME=str(home))
    path.chmod(0o600)
    path.write_text('[prod]\nauthParams = "s3cret\n')
    with pytest.raises(InputError, match=r"profiles\.toml is no TOML") as caught:
        found(GivenOptions(profile="prod"), XDG_CONFIG_HOME=str(home))
    assert "s3cret" not in str(caught.value)


def test_where_profiles_are() -> None:
    assert profiles_path({"HOME": "/h"}) == "/h/.config/headgate/profiles.toml"
    assert profiles_path({"HOME": "/h", "XDG_CONFIG_HOME": "/x"}) == "/x/headgate/profiles.toml"
    with pytest.raises(InputError, match="neither HOME nor XDG_CONFIG_HOME is set"):
        profiles_path({})


def test_two_ways_to_connect_exclude_each_other(conf: str, home: Path) -> None:
    with pytest.raises(InputError, match=r"^--config and --profile name two ways to connect"):
        found(GivenOptions(config_path=conf, profile="prod"))
    with pytest.raises(InputError, match=r"^PULSAR_CLIENT_CONF and HEADGATE_PROFILE name two"):
        found(PULSAR_CLIENT_CONF=conf, HEADGATE_PROFILE="prod")
    both = {"PULSAR_CLIENT_CONF": conf, "HEADGATE_PROFILE": "none", "XDG_CONFIG_HOME": str(home)}
    by_option = found(GivenOptions(profile="prod"), **both)
    assert by_option.admin_url == "https://p:8443"
    assert found(GivenOptions(config_path=conf), **both).admin_url == "https://b:8443/"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (None, "cannot be read: No such file"),
        (b"a=\xff", "is not UTF-8 text .byte 2"),
        (b"#" * (CLIENT_CONF_BYTES_MAX + 1), "is too long: 1,048,576 bytes"),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, data: bytes | None, why: str) -> None:
    path = tmp_path / "client.conf"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(InputError, match=f"the client configuration {path} {why}"):
        found(PULSAR_CLIENT_CONF=str(path))


def test_a_secret_on_the_command_line_gets_a_warning() -> None:
    said: list[str] = []
    found(GivenOptions(auth_plugin="token", auth_params="token:s3cret"), said)
    (warning,) = said
    assert "file:///PATH or env:NAME" in warning
    assert "s3cret" not in warning
    for params in ("env:T", "file:///t"):
        found(GivenOptions(auth_plugin="token", auth_params=params), said, T="x")
    assert len(said) == 1


def test_a_secret_in_a_file_that_all_may_read_gets_a_warning(tmp_path: Path) -> None:
    path, said = tmp_path / "client.conf", list[str]()
    path.write_text("authPlugin=token\nauthParams=token:s3cret")
    for mode in (0o600, 0o644):
        path.chmod(mode)
        found(GivenOptions(config_path=str(path)), said)
    assert said == [f"all users of this machine may read the secret in {path}: chmod 600 it"]


def test_tls_that_checks_less_is_not_silent() -> None:
    said: list[str] = []
    any_host, anybody = ClientConfig(verify_hostname=False), ClientConfig(allow_insecure=True)
    for config in (ClientConfig(), any_host, anybody):
        warn_of_open_tls(config, ["http://b", "pulsar://b"], said.append)
    assert said == []
    warn_of_open_tls(ClientConfig(), ["https://b"], said.append)
    assert said == []
    warn_of_open_tls(any_host, ["http://b", "pulsar+ssl://b"], said.append)
    warn_of_open_tls(anybody, ["https://b"], said.append)
    assert "certificate of another host is accepted" in said[0]
    assert said[1].startswith("any certificate is trusted")


@pytest.mark.parametrize(
    ("url", "is_warned_of"),
    [
        ("http://b:8080", True),
        ("b:8080", True),
        ("http://192.0.2.1:8080", True),
        ("https://b:8443", False),
        ("http://localhost:8080", False),
        ("http://[::1]:8080", False),
        ("http://[", False),
    ],
)
def test_credentials_without_tls_are_warned_of(url: str, is_warned_of: bool) -> None:
    said: list[str] = []
    found(GivenOptions(admin_url=url), said, HEADGATE_TOKEN="s3cret")
    assert [f"{url} has no TLS" in each for each in said] == [True] * is_warned_of
    assert "s3cret" not in "".join(said)
    found(GivenOptions(admin_url=url), said := [])
    assert said == []
