"""The command's options, as settings of the agent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from headgate.agent.configuration import AgentSettings
from headgate.app import agent_daemon
from headgate.cli.group import main


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[tuple[AgentSettings, bool]]:
    """The settings with which the agent was run, and whether it may listen openly."""
    found: list[tuple[AgentSettings, bool]] = []

    def run(settings: AgentSettings, _env: Any, _say: Any, *, is_insecure_allowed: bool) -> None:
        found.append((settings, is_insecure_allowed))

    monkeypatch.setattr(agent_daemon, "run_agent", run)
    return found


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(main, ["agent", *arguments], env={"HEADGATE_TOKEN": ""})


def test_one_cluster_by_options(ran: list[tuple[AgentSettings, bool]]) -> None:
    result = invoke(
        "--admin-url", "http://pulsar:8080", "--broker-url", "pulsar://pulsar:6650",
        "--name", "prod", "--namespace", "acme/orders", "--files", "records",
        "--telemetry-topic", "acme/telemetry/samples", "--listen", "127.0.0.1:0",
        "--insecure-listen",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    ((settings, insecure),) = ran
    (cluster,) = settings.clusters
    assert (cluster.name, cluster.client.admin_url) == ("prod", "http://pulsar:8080")
    assert (cluster.namespaces, cluster.telemetry_url) == (
        ("acme/orders",), "pulsar://pulsar:6650",
    )  # fmt: skip
    assert (settings.files, settings.port.port, insecure) == ("records", 0, True)


def test_the_admin_url_of_a_client_conf_counts(
    ran: list[tuple[AgentSettings, bool]], tmp_path: Path
) -> None:
    path = tmp_path / "client.conf"
    path.write_text("webServiceUrl=http://other:8080\n")
    assert invoke("--config", str(path)).exit_code == 0
    assert ran[0][0].clusters[0].client.admin_url == "http://other:8080"
    assert ran[0][0].clusters[0].name == "cluster"


def test_several_clusters_by_a_file(ran: list[tuple[AgentSettings, bool]], tmp_path: Path) -> None:
    path = tmp_path / "clusters.toml"
    path.write_text(
        '[cluster.a]\nwebServiceUrl = "http://a:8080"\n[cluster.b]\nwebServiceUrl = "http://b:8080"\n'
    )
    assert invoke("--clusters", str(path)).exit_code == 0
    assert [each.name for each in ran[0][0].clusters] == ["a", "b"]


SECRETS = (
    '[cluster.a]\nwebServiceUrl = "http://a:8080"\nauthPlugin = "token"\nauthParams = "token:ab"\n',
    '[agent]\ntokenSecretKey = "data:;base64,QUJD"\nroles = ["ops"]\n'
    '[cluster.a]\nwebServiceUrl = "http://a:8080"\n',
)
NAMED = (
    '[cluster.a]\nwebServiceUrl = "http://a:8080"\nauthPlugin = "token"\n'
    'authParams = "file:///etc/token"\n'
)


@pytest.mark.parametrize("text", SECRETS)
@pytest.mark.parametrize("mode", [0o644, 0o660])
def test_a_file_with_a_secret_that_others_may_read_is_refused(
    ran: list[tuple[AgentSettings, bool]], tmp_path: Path, text: str, mode: int
) -> None:
    path = tmp_path / "clusters.toml"
    path.write_text(text)
    path.chmod(mode)
    refused = invoke("--clusters", str(path))
    assert refused.exit_code != 0
    assert f"has a secret, and may be read or written by others (mode {mode:04o})" in refused.output
    path.chmod(0o600)
    assert invoke("--clusters", str(path)).exit_code == 0
    path.write_text(NAMED)
    path.chmod(mode)
    assert invoke("--clusters", str(path)).exit_code == 0
    assert len(ran) == 2


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--clusters", "c", "--admin-url", "http://x:1"], "--admin-url and --clusters exclude"),
        (["--clusters", "c", "--namespace", "a/b"], "--namespace and --clusters exclude"),
        (["--clusters", "c", "--token-file", "t"], "--token-file and --clusters exclude"),
        (["--clusters", "none.toml"], "none.toml cannot be read: No such file"),
        (["--broker-url", "pulsar://x:6650"], "no effect without --telemetry-topic"),
        (["--telemetry-topic", "a/b/c"], "needs the binary protocol"),
        (["--name", "a b"], "cluster 'a b': 1 to 100 letters"),
        (["--listen", "8090"], "--listen '8090': HOST:PORT is allowed"),
    ],
)
def test_what_is_not_allowed(
    ran: list[tuple[AgentSettings, bool]], arguments: list[str], sentence: str
) -> None:
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert sentence in result.output
    assert ran == []
