"""Missing system packages are installed where that may be, and named otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest
from devkit import system
from devkit.console import DevError


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine of a root user with nothing on its PATH but what a test puts there."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(system.os, "geteuid", lambda: 0)
    return tmp_path


def put_program(folder: Path, name: str, script: str) -> None:
    """Put a shell script on the PATH."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def put_apt(folder: Path, script: str) -> Path:
    """Put an apt-get there that notes its arguments and then does what ``script`` says."""
    log = folder / "log"
    put_program(folder, "env", 'shift; exec "$@"')
    put_program(folder, "timeout", 'shift; exec "$@"')
    put_program(folder, "apt-get", f'echo "$*" >> {log}\n{script}')
    return log


def test_what_is_there_is_not_asked_for(machine: Path) -> None:
    put_program(machine, "java", "")
    system.ensure_packages(venv=True, java=True)


def test_java_home_counts(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = machine / "jvm"
    (home / "bin").mkdir(parents=True)
    put_program(home / "bin", "java", "")
    assert not system.has_java()
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert system.has_java()


def test_without_apt_one_sentence_names_both_packages(machine: Path) -> None:
    assert machine.exists()
    with pytest.raises(DevError) as caught:
        system.ensure_packages(venv=True, java=True)
    text = str(caught.value)
    assert "python3-venv" in text
    assert "openjdk-17-jre-headless" in text
    assert "\n" not in text


def test_without_root_and_sudo_nothing_is_tried(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = put_apt(machine, "")
    monkeypatch.setattr(system.os, "geteuid", lambda: 1000)
    with pytest.raises(DevError, match="as root"):
        system.ensure_packages(venv=False, java=True)
    assert not log.exists()


def test_sudo_that_asks_for_nothing_is_used(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = put_apt(machine, "")
    put_program(machine, "sudo", 'shift; exec "$@"')
    put_program(machine, "true", "")
    monkeypatch.setattr(system.os, "geteuid", lambda: 1000)
    system.ensure_packages(venv=False, java=True)
    assert log.read_text() == "-y install --no-install-recommends openjdk-17-jre-headless\n"


def test_old_lists_are_refreshed_and_the_newer_java_tried(machine: Path) -> None:
    log = put_apt(machine, 'case "$*" in *default-jre*|*update*) exit 0;; *) exit 100;; esac')
    system.ensure_packages(venv=False, java=True)
    assert [line.split()[-1] for line in log.read_text().splitlines()] == [
        "openjdk-17-jre-headless",
        "update",
        "openjdk-17-jre-headless",
        "default-jre-headless",
    ]


def test_an_apt_that_fails_ends_in_the_sentence(machine: Path) -> None:
    put_apt(machine, "echo no network; exit 100")
    with pytest.raises(DevError, match="could not install what is missing"):
        system.ensure_packages(venv=False, java=True)


def test_maven_and_a_compiler_are_installed_for_the_peer_test(machine: Path) -> None:
    log = put_apt(machine, 'case "$*" in *default-jdk*|*update*) exit 0;; *) exit 100;; esac')
    put_program(machine, "mvn", "")
    assert not system.has_maven()
    system.ensure_packages(venv=False, java=False, maven=True)
    assert log.read_text().splitlines() == [
        "-y install --no-install-recommends maven openjdk-17-jdk-headless",
        "-y update",
        "-y install --no-install-recommends maven openjdk-17-jdk-headless",
        "-y install --no-install-recommends maven default-jdk-headless",
    ]
    put_program(machine, "javac", "")
    assert system.has_maven()


def test_the_compiler_of_java_home_counts(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_program(machine, "mvn", "")
    (machine / "jdk/bin").mkdir(parents=True)
    put_program(machine / "jdk/bin", "javac", "")
    monkeypatch.setenv("JAVA_HOME", str(machine / "jdk"))
    assert system.has_maven()


def test_without_apt_one_sentence_names_what_the_peer_test_needs(machine: Path) -> None:
    assert machine.exists()
    with pytest.raises(DevError) as caught:
        system.ensure_packages(venv=False, java=False, maven=True)
    text = str(caught.value)
    assert "maven" in text
    assert "openjdk-17-jdk-headless" in text
    assert "\n" not in text


def test_an_apt_that_waits_for_ever_is_timed_out(
    machine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put_apt(machine, "")
    put_program(machine, "timeout", "exit 124")
    with pytest.raises(DevError, match="could not install what is missing"):
        system.ensure_packages(venv=False, java=True)
    assert "failed: timed out after 1800 s" in capsys.readouterr().err


def test_a_browser_is_installed_for_the_tests_of_the_page(machine: Path) -> None:
    log = put_apt(machine, "")
    system.ensure_packages(browser=True)
    assert log.read_text() == "-y install --no-install-recommends chromium-headless-shell\n"


def test_without_apt_one_sentence_names_the_browser(machine: Path) -> None:
    assert machine.exists()
    with pytest.raises(
        DevError, match="need the package chromium-headless-shell, or a Chrome on the PATH"
    ):
        system.ensure_packages(browser=True)


def test_a_browser_that_is_there_is_not_asked_for(machine: Path) -> None:
    put_program(machine, "google-chrome", "")
    system.ensure_packages(browser=True)
