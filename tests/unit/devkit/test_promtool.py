"""promtool is taken from the PATH, from the cache, or out of its package."""

from __future__ import annotations

from pathlib import Path

import pytest
from devkit import promtool
from devkit.console import DevError

from tests.unit.devkit.test_system import put_program


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with nothing on its PATH but what a test puts there, and an empty cache."""
    programs, cache = tmp_path / "programs", tmp_path / "cache"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setattr(promtool, "CACHE", cache)
    monkeypatch.setattr(promtool, "CACHED", cache / "promtool")
    monkeypatch.setattr(promtool, "refresh_package_lists", lambda: False)
    return programs


def test_one_that_is_installed_is_used(machine: Path) -> None:
    put_program(machine, "promtool", "")
    assert promtool.ensure_promtool() == machine / "promtool"


def test_it_is_taken_out_of_the_package_once(machine: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    put_program(machine, "apt-get", f'echo "$*" >> {log}\n: > prometheus.deb')
    inside = "unpacked/usr/bin"
    commands = "/bin/mkdir -p unpacked/usr/bin\n: > unpacked/usr/bin/promtool"
    put_program(machine, "dpkg-deb", f'[ "$3" = {inside[:8]} ] || exit 1\n{commands}')
    for _ in range(2):
        assert promtool.ensure_promtool() == tmp_path / "cache/promtool"
    assert log.read_text() == "download prometheus\n"
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["promtool"]


def test_the_package_lists_are_refreshed_before_giving_up(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_program(machine, "apt-get", "exit 100")
    put_program(machine, "dpkg-deb", "")
    asked = []
    monkeypatch.setattr(promtool, "refresh_package_lists", lambda: asked.append(1) or True)
    with pytest.raises(DevError, match="package prometheus"):
        promtool.ensure_promtool()
    assert asked == [1]


@pytest.mark.usefixtures("machine")
def test_without_apt_it_is_named() -> None:
    with pytest.raises(DevError, match="put promtool on the PATH"):
        promtool.ensure_promtool()
