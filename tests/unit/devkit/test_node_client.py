"""The Node.js client is compiled with a checkout's headers, or downloaded, and made once."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from devkit import node_client
from devkit.console import DevError, LeftOutError

VERSION = "4.2.0"


class Npm:
    """Stands in for npm; commands that contain a word fail."""

    def __init__(self, failing: str = "") -> None:
        self.failing = failing
        self.commands: list[Sequence[str]] = []

    def captured(
        self, command: Sequence[str], _limit_s: float, *, folder: Path
    ) -> subprocess.CompletedProcess[str]:
        """Stands for ``processes.captured``."""
        assert command[0] == "env"
        self.commands.append(command)
        if "ci" in command:
            assert (folder / "package-lock.json").is_file()
            package = folder / "node_modules" / node_client.PACKAGE
            package.mkdir(parents=True)
            (package / "pulsar-client-cpp.txt").write_text(f"CPP_CLIENT_VERSION={VERSION}\n")
        status = int(bool(self.failing) and self.failing in command)
        return subprocess.CompletedProcess(command, status, "", "404 Not Found\n")


@pytest.fixture
def python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Python with the Python client."""
    library = tmp_path / "venv/lib/python3.11/site-packages/pulsar_client.libs/libpulsar-1.so"
    library.parent.mkdir(parents=True)
    library.touch()
    monkeypatch.setattr(node_client, "CACHE", tmp_path / "cache")
    monkeypatch.delenv(node_client.CHECKOUT_VARIABLE, raising=False)
    return tmp_path / "venv/bin/python"


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "checkout"
    folder.mkdir()
    (folder / "version.txt").write_text(f"{VERSION}\n")
    monkeypatch.setenv(node_client.CHECKOUT_VARIABLE, str(folder))
    return folder


def npm(monkeypatch: pytest.MonkeyPatch, failing: str = "") -> Npm:
    found = Npm(failing)
    monkeypatch.setattr(node_client, "captured", found.captured)
    return found


def test_it_is_compiled_once(
    python: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = npm(monkeypatch)
    modules = node_client.ensure_node_client(python)
    assert modules == tmp_path / "cache/peer-node/node_modules"
    install, build = found.commands
    assert "--ignore-scripts" in install
    assert f"CXXFLAGS=-I{checkout}/include" in build
    assert "npm_config_build_from_source=true" in build
    linked = tmp_path / "cache/peer-node/lib/libpulsar.so"
    assert linked.resolve().name == "libpulsar-1.so"
    assert f"-Wl,-rpath,{linked.resolve().parent}" in " ".join(build)
    assert node_client.ensure_node_client(python) == modules
    assert len(found.commands) == 2


def test_without_a_checkout_its_installer_downloads(
    python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = npm(monkeypatch)
    node_client.ensure_node_client(python)
    assert found.commands[1][-3:] == ["npm", "rebuild", node_client.PACKAGE]


def test_it_is_left_out_where_it_cannot_be_had(
    python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    npm(monkeypatch, "rebuild")
    with pytest.raises(LeftOutError, match=node_client.CHECKOUT_VARIABLE):
        node_client.ensure_node_client(python)


def test_the_headers_must_fit(
    python: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    npm(monkeypatch)
    (checkout / "version.txt").write_text("4.3.0-pre\n")
    with pytest.raises(DevError, match=r"version 4\.3\.0-pre .* made for 4\.2\.0"):
        node_client.ensure_node_client(python)


@pytest.mark.parametrize("failing", ["ci", "rebuild"])
def test_what_npm_said_is_shown(
    python: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    npm(monkeypatch, failing)
    with pytest.raises(DevError, match="404 Not Found") as caught:
        node_client.ensure_node_client(python)
    assert not isinstance(caught.value, LeftOutError)


def test_it_links_with_the_python_client(
    python: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    npm(monkeypatch)
    with pytest.raises(DevError, match="no Python client"):
        node_client.ensure_node_client(tmp_path / "other/bin/python")
