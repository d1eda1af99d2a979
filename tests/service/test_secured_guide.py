"""The guide "Secure a broker", followed to the letter; then our own clients, each with its role."""

from __future__ import annotations

import os
import re
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from devkit.paths import ROOT

from headgate.base.errors import InputError
from headgate.pipeline.access_options import AccessOptions
from headgate.pipeline.options import SourceOptions
from headgate.pipeline.preflight import check_brokers
from tests.service.clients import wait_until
from tests.service.process import READY_TIMEOUT_S, STOP_TIMEOUT_S

GUIDE = (ROOT / "docs/guide/secure-a-broker.md").read_text()
TELEMETRY = "persistent://headgate/telemetry/samples"


def section(title: str) -> str:
    """The part of the guide below a heading."""
    return GUIDE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def blocks(text: str, kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def commands(block: str) -> list[tuple[str, str]]:
    """Each command of a console block, and what the guide says that it prints."""
    found = []
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        lines = part.splitlines(keepends=True)
        length = 1
        while lines[length - 1].endswith("\\\n"):
            length += 1
        if "<<END" in part:
            length = lines.index("END\n") + 1
        found.append(("".join(lines[:length]), "".join(lines[length:])))
    return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(frozen=True)
class Place:
    """The guide's one directory, on this machine and with ports that are free."""

    folder: Path
    broker_port: int
    web_port: int

    def local(self, text: str) -> str:
        """What somebody types who tries it on one machine."""
        text = text.replace("broker.example.com", "localhost")
        text = text.replace(":8443", f":{self.web_port}").replace(":6651", f":{self.broker_port}")
        return text.replace("bindAddress=0.0.0.0", "bindAddress=127.0.0.1")

    def environment(self) -> dict[str, str]:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        return {**os.environ, "PATH": path, "HOME": str(self.folder)}

    def run(self, command: str, status: int = 0) -> str:
        """What a command prints."""
        found = subprocess.run(
            ["bash", "-c", self.local(command)], cwd=self.folder, env=self.environment(),
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert found.returncode == status, (command, found.stdout, found.stderr)
        return found.stdout if status == 0 else found.stderr

    def use_free_ports(self) -> None:
        """The usual ones may be taken on this machine."""
        for path in (self.folder / "headgate-certs").glob("*.conf"):
            text = path.read_text()
            for usual, port in (("6651", self.broker_port), ("8443", self.web_port)):
                text = re.sub(rf"(?<=[=:]){usual}$", str(port), text, flags=re.MULTILINE)
            path.write_text(text)

    def token(self, role: str) -> Path:
        """A file with a token of a role."""
        path = self.folder / f"{role}.token"
        self.run(
            "(umask 077; headgate tokens create --secret-key file://$PWD/secret.key "
            f"--subject {role} > {path})"
        )
        return path

    def headgate(self, words: str, role: str, status: int = 0) -> str:
        """A command of ours as a role."""
        name, _, rest = words.partition(" ")
        return self.run(
            f"headgate {name} --admin-url https://localhost:8443 --token-file {role}.token "
            f"--tls-trust-cert-path headgate-certs/ca.cert.pem {rest}",
            status,
        )


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """After the five commands."""
    found = Place(tmp_path_factory.mktemp("guide"), free_port(), free_port())
    (block,) = blocks(section("Five commands"), "console")
    certificates, secret, config, serve, grant = (command for command, _ in commands(block))
    found.run(certificates)
    found.use_free_ports()
    found.run(secret)
    found.run(config)
    with (found.folder / "broker.log").open("wb") as log:
        running = subprocess.Popen(
            ["bash", "-c", f"exec {found.local(serve)}"], cwd=found.folder,
            env=found.environment(), stdout=log, stderr=log,
        )  # fmt: skip
        try:
            end_s = time.monotonic() + READY_TIMEOUT_S
            while " ready" not in (found.folder / "broker.log").read_text():
                assert running.poll() is None, (found.folder / "broker.log").read_text()
                assert time.monotonic() < end_s
                time.sleep(0.05)
            assert found.run(grant) == ""
            yield found
        finally:
            running.terminate()
            running.wait(STOP_TIMEOUT_S)
    text = (found.folder / "broker.log").read_text()
    assert "Traceback" not in text
    assert "eyJ" not in text


def test_the_application_of_the_guide(place: Place) -> None:
    text = section("An application")
    (block,) = blocks(text, "console")
    for command, _ in commands(block):
        place.run(command)
    assert (place.folder / "orders.token").stat().st_mode & 0o077 == 0
    (source,) = blocks(text, "python")
    (place.folder / "application.py").write_text(place.local(source))
    assert "b'first'" in place.run("python application.py")


def test_it_is_closed(place: Place) -> None:
    (block,) = blocks(section("Is it closed?"), "console")
    (check, said), (ask, refusal) = commands(block)
    assert place.run(check) == said
    url = re.search(r"https://\S+", place.local(ask))
    assert url is not None
    context = ssl.create_default_context(cafile=str(place.folder / "headgate-certs/ca.cert.pem"))
    with pytest.raises(urllib.error.HTTPError) as answer:
        urllib.request.urlopen(url[0], context=context, timeout=10)
    assert answer.value.read().decode() == refusal.strip()


def test_a_role_of_one_namespace_with_our_commands(place: Place) -> None:
    place.token("orders")
    place.run("headgate admin --config headgate-certs/client-admin.conf topics create limited")
    assert "limited" in place.headgate("admin topics list public/default", "orders")
    assert place.headgate("explain limited", "orders")
    for words in ("explain", "top", "admin tenants list", f"admin topics stats {TELEMETRY}"):
        said = place.headgate(words, "orders", status=2 if words in ("explain", "top") else 1)
        assert "Traceback" not in said


def source_of(place: Place, role: str, folder: Path, topic: str = TELEMETRY) -> SourceOptions:
    access = AccessOptions(
        auth_plugin="token",
        auth_params=(place.folder / f"{role}.token").as_uri(),
        trust_path=str(place.folder / "headgate-certs/ca.cert.pem"),
    )
    broker_url = f"pulsar+ssl://localhost:{place.broker_port}"
    web_url = f"https://localhost:{place.web_port}"
    return SourceOptions(str(folder), (broker_url,), (web_url,), topic, access=access)


def test_the_role_of_the_pipeline_needs_one_grant(place: Place, tmp_path: Path) -> None:
    """And no role without it reads the telemetry, which names all topics."""
    for role in ("pipeline", "orders"):
        place.token(role)
    admin = "headgate admin --config headgate-certs/client-admin.conf"
    place.run(f"{admin} namespaces grant-permission headgate/telemetry --role pipeline "
              "--actions consume")  # fmt: skip
    wait_until(lambda: TELEMETRY in place.run(f"{admin} topics list headgate/telemetry"))
    check_brokers(source_of(place, "pipeline", tmp_path))
    with pytest.raises(InputError, match="401"):
        check_brokers(source_of(place, "orders", tmp_path))
    # A topic that is not there yet: the answer is about the topic, not about rights.
    other = source_of(place, "pipeline", tmp_path, "persistent://headgate/telemetry/absent")
    with pytest.raises(InputError, match="has no topic"):
        check_brokers(other)
