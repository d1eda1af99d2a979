"""The key, the tokens and the files of a secured demo."""

from __future__ import annotations

import stat
import time
from pathlib import Path

import pytest

from headgate.access.authentication import authentication
from headgate.app.config_file import load_settings
from headgate.app.key_files import read_key
from headgate.base.properties import Assignment
from headgate.cli.connection.sources import GivenOptions, client_config
from headgate.demo.credentials import (
    ADMIN,
    CONSUMER,
    GRANTS,
    PIPELINE,
    PRODUCER,
    UNSECURED,
    Credentials,
    new_credentials,
)
from headgate.security.token_keys import secret_key
from headgate.security.tokens import TokenRules, TokenVerifier


@pytest.fixture
def made(tmp_path: Path) -> Credentials:
    return new_credentials(tmp_path / "of & a run")


def _token(made: Credentials, role: str) -> str:
    return Path(made.token_path(role)).read_text().strip()


def test_only_the_owner_may_read_the_files(made: Credentials, tmp_path: Path) -> None:
    folder = tmp_path / "of & a run"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert set(modes.values()) == {0o600}
    assert len(modes) == 7


def test_each_role_has_a_token_of_the_brokers_key(made: Credentials) -> None:
    settings = load_settings(
        [Assignment(key, text, key) for key, text in made.settings.items()]
    ).settings
    assert settings.authenticationEnabled
    assert settings.authorizationEnabled
    assert settings.superUserRoles == ADMIN
    key = secret_key(read_key(settings.tokenSecretKey, "k", is_secret=True), "k")
    verifier = TokenVerifier([key], TokenRules())
    for role in (ADMIN, PRODUCER, CONSUMER, PIPELINE):
        assert verifier.principal(_token(made, role), time.time()).role == role


def test_two_runs_share_nothing(made: Credentials, tmp_path: Path) -> None:
    other = new_credentials(tmp_path / "another")
    assert _token(made, ADMIN) != _token(other, ADMIN)


def test_the_administrators_files_are_what_the_commands_and_curl_take(made: Credentials) -> None:
    said: list[str] = []
    config = client_config(GivenOptions(config_path=made.config_path), {}, said.append)
    sent = authentication(config, {}, said.append)
    token = _token(made, ADMIN)
    assert sent.headers() == made.headers == {"Authorization": f"Bearer {token}"}
    assert Path(made.header_path).read_text() == f"Authorization: Bearer {token}\n"
    assert not said, "nothing to warn of"


def test_no_text_of_it_has_a_token(made: Credentials) -> None:
    assert _token(made, ADMIN) not in repr(made)


def test_roles_get_one_right_each(made: Credentials) -> None:
    calls = made.grant_calls(*GRANTS)
    base = "/admin/v2/namespaces"
    assert [(call.method, call.path, call.body) for call in calls] == [
        ("POST", f"{base}/public/default/permissions/producer", ["produce"]),
        ("POST", f"{base}/public/default/permissions/consumer", ["consume"]),
        ("POST", f"{base}/headgate/telemetry/permissions/pipeline", ["consume"]),
    ]
    assert made.grant_calls(PRODUCER) == calls[:1]


def test_a_plain_demo_has_none() -> None:
    assert not UNSECURED.is_secured
    assert not UNSECURED.settings
    assert not UNSECURED.headers
    assert UNSECURED.token_path(PRODUCER) == UNSECURED.header_path == ""
    assert UNSECURED.grant_calls(*GRANTS) == []
