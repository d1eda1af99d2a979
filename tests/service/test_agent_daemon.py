"""``headgate agent`` in a process of its own, before a Headgate broker in place of a Pulsar."""

from __future__ import annotations

import json
import re
import select
import signal
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest

from headgate.record.codec import decode
from headgate.record.frames import frames
from tests.service.process import BrokerProcess
from tests.trial_certificates import Trial

_READY = re.compile(r"Headgate \S+ agent ready: (?P<url>https?://\S+)  watching (?P<names>.+)\n")
WAIT_S = 60.0


class AgentProcess:
    """A running agent."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.log_path = folder / "agent.log"
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "headgate.cli", "agent", *words],
                stdout=subprocess.PIPE, stderr=log, cwd=folder,
            )  # fmt: skip
        stdout = self._process.stdout
        assert stdout is not None
        readable, _, _ = select.select([stdout], [], [], WAIT_S)
        line = stdout.readline().decode() if readable else ""
        found = _READY.fullmatch(line)
        if found is None:
            self.kill()
        assert found is not None, line + self.log_path.read_text()
        self.url, self.names = found["url"], found["names"]

    def ask(
        self, path: str, *, token: str = "", context: ssl.SSLContext | None = None
    ) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        request = urllib.request.Request(self.url + path, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=10, context=context) as reply:
                body = reply.read().decode()
                status = reply.status
        except urllib.error.HTTPError as error:
            status, body = error.code, error.read().decode()
        return status, json.loads(body) if body.startswith(("{", "[")) else body

    def stop(self) -> int:
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(WAIT_S)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(WAIT_S)
        if self._process.stdout is not None:
            self._process.stdout.close()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    running = BrokerProcess(tmp_path_factory.mktemp("broker")).start()
    topic = "/admin/v2/persistent/public/default/orders"
    for path in (topic, f"{topic}/subscription/billing"):
        assert running.request("PUT", path)[0] == 204
    yield running
    running.close()


@pytest.mark.slow
def test_it_answers_as_a_broker_does_and_writes_its_last_window(
    broker: BrokerProcess, tmp_path: Path
) -> None:
    (tmp_path / "clusters.toml").write_text(
        '[agent]\nlisten = "127.0.0.1:0"\nfiles = "records"\n'
        f'[cluster.prod]\nwebServiceUrl = "{broker.admin_url}"\n'
        '[cluster.away]\nwebServiceUrl = "http://127.0.0.1:1"\n'
    )
    agent = AgentProcess(tmp_path, "--clusters", "clusters.toml")
    try:
        assert agent.names == "prod, away"
        path = "/admin/v2/headgate/explain/persistent/public/default/orders?cluster="
        deadline_s = time.monotonic() + WAIT_S
        status, report = agent.ask(path + "prod")
        while status != 200 and time.monotonic() < deadline_s:
            time.sleep(0.2)
            status, report = agent.ask(path + "prod")
        assert (status, report["evidence"]) == (200, "inferred")
        assert [each["subscription"] for each in report["subscriptions"]] == ["billing"]
        assert agent.ask(path + "away")[0] == 404
        status, health = agent.ask("/health")
        assert (status, health["status"]) == (200, "ok")
        prod, away = agent.ask("/admin/v2/headgate/clusters?totals=true")[1]
        assert (prod["reachable"], prod["brokers"], away["reachable"]) == (True, 1, False)
        assert (prod["totals"]["subscriptions"], away["lastSurveyAgeS"]) == (1, None)
        status, own = agent.ask("/admin/v2/headgate/permissions/own")
        assert (status, own) == (200, {"role": "", "allowed": []})
        assert "cluster" in agent.ask("/headgate/server.json")[1]["views"]
        metrics = agent.ask("/metrics")[1]
        assert 'headgate_agent_topics{cluster="prod"}' in metrics
        assert re.search(
            r'headgate_agent_look_errors_total\{cluster="away",kind="brokers"\}', metrics
        )
        assert agent.ask("/admin/v2/persistent/public/default")[0] == 404
        status, page = agent.ask("/headgate/")
        assert (status, "<title>Headgate</title>" in page) == (200, True)
        assert agent.stop() == 0
    finally:
        agent.kill()
    batches = []
    # A test that runs when a file's time ends leaves two.
    for file in (tmp_path / "records" / "prod").glob("*.records"):
        with file.open("rb") as opened:
            batches += [decode(message) for message in frames(opened.read)]
    assert {batch.header.cluster for batch in batches} == {"prod"}
    names = [name for batch in batches for kind in batch.columns.values() for name in kind["topic"]]
    assert "persistent://public/default/orders" in names
    assert "internal error" not in agent.log_path.read_text()


@pytest.mark.slow
def test_its_port_has_tls_and_takes_new_certificates(broker: BrokerProcess, tmp_path: Path) -> None:
    trial = Trial(tmp_path / "certs", days=20)
    secret = tmp_path / "secret.key"
    secret.write_bytes(b"s" * 32)
    secret.chmod(0o600)
    (tmp_path / "clusters.toml").write_text(
        '[agent]\nlisten = "127.0.0.1:0"\nroles = ["ops"]\n'
        f'tokenSecretKey = "{secret.as_uri()}"\n'
        f'tlsCertificateFilePath = "{trial.settings["tlsCertificateFilePath"]}"\n'
        f'tlsKeyFilePath = "{trial.settings["tlsKeyFilePath"]}"\n'
        "tlsCertRefreshCheckDurationSec = 0\n"
        f'[cluster.prod]\nwebServiceUrl = "{broker.admin_url}"\n'
    )
    token = jwt.encode({"sub": "ops"}, b"s" * 32, "HS256")
    series = "headgate_agent_tls_certificate_expires_timestamp_seconds"

    def expires_at_s() -> float:
        status, text = agent.ask("/metrics", token=token, context=trial.context())
        assert status == 200
        return float(re.findall(rf"^{series} (\d+)$", text, re.MULTILINE)[0])

    agent = AgentProcess(tmp_path, "--clusters", "clusters.toml")
    try:
        assert agent.url.startswith("https://")
        assert agent.ask("/health", context=trial.context()) == (200, {"status": "ok"})
        health = agent.ask("/health", token=token, context=trial.context())
        assert health[1]["tlsProblem"] is None
        assert agent.ask("/metrics", context=trial.context())[0] == 401
        with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
            agent.ask("/health")
        plain = agent.url.replace("https://", "http://") + "/health"
        with pytest.raises(urllib.error.HTTPError, match="400"):
            urllib.request.urlopen(plain, timeout=10)
        before_s = expires_at_s()
        trial.renew_server(60)
        deadline_s = time.monotonic() + WAIT_S
        while expires_at_s() == before_s and time.monotonic() < deadline_s:
            time.sleep(0.2)
        assert expires_at_s() > before_s
        assert agent.stop() == 0
    finally:
        agent.kill()


def test_a_start_that_cannot_be_is_one_sentence(broker: BrokerProcess, tmp_path: Path) -> None:
    def run(*words: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-m", "headgate.cli", "agent", *words],
            capture_output=True, text=True, timeout=WAIT_S, check=False, cwd=tmp_path,
        )  # fmt: skip
        return done.returncode, done.stderr.strip().splitlines()[-1]

    status, error = run("--listen", "0.0.0.0:0")
    assert (status, error[:40]) == (2, "Error: listen='0.0.0.0' is not allowed w")
    port = broker.admin_url.rpartition(":")[2]
    status, error = run("--listen", f"127.0.0.1:{port}")
    assert (status, "the port is in use" in error) == (1, True)
    (tmp_path / "file").write_text("")
    status, error = run("--listen", "127.0.0.1:0", "--files", "file")
    assert (status, "folder file/cluster of records" in error) == (2, True)
