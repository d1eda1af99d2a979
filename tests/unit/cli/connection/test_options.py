"""One set of options for all commands that connect to a broker."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from headgate.access.admin_api import AdminApi
from headgate.access.client_config import ADMIN_URL, ClientConfig
from headgate.cli.connection.options import access_options, api_options, warn
from headgate.cli.group import main
from tests.unit.cli.admin.fake_server import FakeServer, Reply

NAMES = {
    "--config", "--profile", "--auth-plugin", "--auth-params", "--token-file",
    "--tls-trust-cert-path", "--tls-enable-hostname-verification", "--tls-allow-insecure",
}  # fmt: skip
TOKEN = ("--auth-plugin", "token", "--auth-params")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> FakeServer:
    fake = FakeServer()
    fake.install(monkeypatch)
    return fake


def run(*words: str, **environment: str) -> Result:
    clean = {"PULSAR_CLIENT_CONF": None, "HEADGATE_PROFILE": None, "HEADGATE_TOKEN": None}
    return CliRunner(env=clean | environment).invoke(main, list(words))


@pytest.mark.parametrize("path", ["admin", "explain", "backup", "pipeline run", "pipeline stream"])
def test_every_command_has_them(path: str) -> None:
    command: click.Command = main
    for name in path.split():
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(command), name)
        assert found is not None
        command = found
    assert {name for parameter in command.params for name in parameter.opts} >= NAMES


@pytest.mark.parametrize("command", [("admin", "tenants", "list"), ("explain", "--json")])
def test_a_request_carries_what_a_file_says(
    server: FakeServer, tmp_path: Path, command: tuple[str, ...]
) -> None:
    server.answer({"subscriptions": []})
    path = tmp_path / "client.conf"
    path.write_text("webServiceUrl=http://b:1\nauthPlugin=token\nauthParams=env:T\n")
    name, *rest = command
    result = run(name, "--config", str(path), *rest, T="s3cret")
    assert result.exit_code == 0
    assert result.stderr.count("Warning") == result.stderr.count("http://b:1 has no TLS") == 1
    assert server.headers == {"Authorization": "Bearer s3cret"}
    result = run(*command, PULSAR_CLIENT_CONF=str(path), T="other")
    assert result.exit_code == 0
    assert server.headers == {"Authorization": "Bearer other"}
    result = run(*command, HEADGATE_TOKEN="third")
    assert server.headers == {"Authorization": "Bearer third"}


def test_a_secret_on_the_command_line_works_and_gets_one_warning(server: FakeServer) -> None:
    server.replies = [Reply(200, json.dumps(["t"]).encode())]
    result = run("admin", *TOKEN, "token:s3cret", "tenants", "list")
    assert (result.exit_code, result.stdout) == (0, "t\n")
    assert server.headers == {"Authorization": "Bearer s3cret"}
    assert result.stderr.startswith(
        "Warning: every user of this machine can see a secret in --auth"
    )
    assert result.stderr.count("Warning") == 1
    assert "s3cret" not in result.stderr


def test_a_refusal_in_pulsar_admins_form(server: FakeServer) -> None:
    server.replies = [Reply(401, b'{"reason": "Authentication required"}')]
    result = run("admin", "tenants", "list")
    assert result.exit_code == 1
    assert result.stderr == (
        "Authentication required\n\nReason: Authentication required\n\n"
        "The command sent no credentials. Name a client.conf with --config or PULSAR_CLIENT_CONF, "
        "a --profile, or --auth-plugin and --auth-params.\n"
    )


def test_a_refusal_of_explain(server: FakeServer) -> None:
    server.replies = [Reply(403, b'{"reason": "role app may not"}')]
    result = run("explain", "x", HEADGATE_TOKEN="s3cret")
    assert result.exit_code == 2
    assert result.stderr == (
        f"Error: {ADMIN_URL} refuses the request (status 403): role app may not. The command sent "
        "the token in the variable HEADGATE_TOKEN. The broker knows this role, "
        "which lacks the right for the request.\n"
    )


@pytest.mark.parametrize(
    ("command", "status"), [(("admin", "tenants", "list"), 1), (("explain",), 2)]
)
def test_a_file_that_is_missing_ends_the_command(
    server: FakeServer, command: tuple[str, ...], status: int
) -> None:
    name, *rest = command
    result = run(name, "--config", "/no/such", *rest)
    assert result.exit_code == status
    assert "the client configuration /no/such cannot be read: No such file" in result.stderr
    result = run(name, "--token-file", "/no/such", *rest)
    assert result.exit_code == status
    assert "/no/such cannot be read: No such file" in result.stderr
    assert server.asked == []


def test_what_needs_no_broker_needs_no_file() -> None:
    assert run("admin", "--config", "/no/such", "tenants", "list", "--help").exit_code == 0
    missing = {"PULSAR_CLIENT_CONF": "/no/such"}
    assert run("admin", "tenants", "--help", **missing).exit_code == 0
    stopped = run("backup", "--to", "b", "--data-dir", "/none", **missing)
    assert "/no/such" not in stopped.stderr


def test_a_url_that_cannot_be_is_named_by_its_origin(tmp_path: Path) -> None:
    path = tmp_path / "client.conf"
    path.write_text("webServiceUrl=pulsar://b:1")
    expected = f"webServiceUrl in {path} is 'pulsar://b:1'; use http://HOST:PORT"
    for command in (("admin", "--config", str(path), "tenants", "list"),
                    ("explain", "--config", str(path))):  # fmt: skip
        assert expected in run(*command).stderr


def test_what_commands_receive() -> None:
    found: list[object] = []

    @click.command()
    @api_options
    def with_api(connect: Callable[[], AdminApi]) -> None:
        found.append(connect().url)
        assert connect() is connect()
        warn("once")
        warn("once")

    @click.command()
    @access_options
    def with_config(connect: Callable[[], ClientConfig]) -> None:
        found.append(connect())

    result = CliRunner().invoke(with_api, ["--admin-url", "http://b:1"])
    assert result.stderr == "Warning: once\n"
    words = ["--tls-allow-insecure", "--tls-disable-hostname-verification"]
    CliRunner().invoke(with_config, words)
    expected = ClientConfig(allow_insecure=True, verify_hostname=False)
    assert found == ["http://b:1", expected]
    result = CliRunner().invoke(with_api, [*words, "--admin-url", "https://b:1"])
    assert result.stderr.startswith("Warning: any certificate is trusted")
