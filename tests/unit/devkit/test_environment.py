"""When the set-up runs, when it does not, and which folder it uses."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from devkit import environment
from devkit.environment import Lane

PROJECT = '[project]\nname = "headgate"\n'


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with locks and nothing installed."""
    locks = tmp_path / "locks"
    locks.mkdir()
    for lane in ("build", "broker", "lint", "dev"):
        (locks / f"{lane}.txt").write_text(f"{lane}==1\n    --hash=sha256:0\n")
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    monkeypatch.setattr(environment, "ROOT", tmp_path)
    monkeypatch.setattr(environment, "LOCKS", locks)
    monkeypatch.setattr(environment, "CACHE", tmp_path / ".cache")
    return tmp_path


def make_environment(path: Path, *, program: str = "#!/bin/sh\nexit 0\n") -> Path:
    """Something that looks like an environment; its Python does what ``program`` says."""
    (path / "bin").mkdir(parents=True)
    python = path / "bin" / "python"
    python.write_text(program)
    python.chmod(0o755)
    return path


def stamp(path: Path, lane: Lane) -> None:
    """Say that ``lane`` is installed there."""
    (path / "headgate-setup").write_text(environment.digest_of(lane, path) + "\n")


def test_nothing_is_current_before_the_first_set_up(checkout: Path) -> None:
    assert not environment.is_current(checkout / ".venv", Lane.BROKER)


def test_a_lane_contains_the_lower_ones_only(checkout: Path) -> None:
    venv = make_environment(checkout / ".venv")
    stamp(venv, Lane.LINT)
    assert environment.is_current(venv, Lane.BROKER)
    assert environment.is_current(venv, Lane.LINT)
    assert not environment.is_current(venv, Lane.DEV)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("locks/lint.txt", "other==2\n"),
        ("locks/build.txt", "other==2\n"),
        ("pyproject.toml", PROJECT + 'version = "2"\n'),
    ],
)
def test_a_change_of_what_it_depends_on_asks_for_a_set_up(
    checkout: Path, file: str, text: str
) -> None:
    venv = make_environment(checkout / ".venv")
    stamp(venv, Lane.LINT)
    (checkout / file).write_text(text)
    assert not environment.is_current(venv, Lane.LINT)


def test_settings_of_tools_ask_for_nothing(checkout: Path) -> None:
    venv = make_environment(checkout / ".venv")
    stamp(venv, Lane.LINT)
    (checkout / "pyproject.toml").write_text(PROJECT + "[tool.ruff]\nline-length = 90\n")
    assert environment.is_current(venv, Lane.LINT)


def test_a_moved_checkout_is_set_up_again(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    venv = make_environment(checkout / ".venv")
    stamp(venv, Lane.DEV)
    monkeypatch.setattr(environment, "ROOT", checkout.parent / checkout.name / ".")
    assert environment.is_current(venv, Lane.DEV)
    elsewhere = checkout / "moved"
    elsewhere.mkdir()
    (elsewhere / "pyproject.toml").write_text(PROJECT)
    monkeypatch.setattr(environment, "ROOT", elsewhere)
    assert not environment.is_current(venv, Lane.DEV)


def test_an_environment_that_works_is_used_even_if_dev_did_not_make_it(checkout: Path) -> None:
    venv = make_environment(checkout / ".venv")
    assert environment.choose_environment() == venv


def test_one_that_is_too_old_is_left_alone(checkout: Path) -> None:
    make_environment(checkout / ".venv", program="#!/bin/sh\nexit 1\n")
    assert environment.choose_environment() == checkout / ".venv-headgate"


def test_a_broken_one_of_our_own_is_made_again(checkout: Path) -> None:
    (checkout / ".venv").mkdir()
    (checkout / ".venv" / "headgate-made-here").write_text("")
    assert environment.choose_environment() == checkout / ".venv"


def test_ensure_sets_up_once_and_stamps_last(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    venv = make_environment(checkout / ".venv")
    seen: list[str] = []

    def run_pip(_python: Path, _arguments: list[str], **options: object) -> None:
        assert not environment.is_current(venv, Lane.LINT)
        seen.append(str(options["title"]))

    monkeypatch.setattr(environment, "run_pip", run_pip)
    for _ in range(2):
        assert environment.ensure(Lane.LINT) == venv / "bin" / "python"
    assert seen == ["build tools", "packages", "headgate itself"]


def test_one_that_was_cut_short_is_not_taken_for_complete(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    venv = make_environment(checkout / ".venv")
    commands: list[list[str]] = []

    def cut_short(_python: Path, _arguments: list[str], **options: object) -> None:
        on_install = options["on_install"]
        assert callable(on_install)
        on_install()
        raise KeyboardInterrupt

    monkeypatch.setattr(environment, "run_pip", cut_short)
    with pytest.raises(KeyboardInterrupt):
        environment.ensure(Lane.LINT)
    assert not environment.is_current(venv, Lane.LINT)
    monkeypatch.setattr(
        environment, "run_pip", lambda _python, arguments, **_options: commands.append(arguments)
    )
    environment.ensure(Lane.LINT)
    assert "--force-reinstall" in commands[0]
    assert environment.is_current(venv, Lane.LINT)


def test_the_real_locks_are_found() -> None:
    assert all(lane.lock.is_file() for lane in Lane)
    assert sys.version_info >= (3, 11)
