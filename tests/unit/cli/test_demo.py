"""Options reach the demo, and its exit status the shell."""

from __future__ import annotations

import importlib.util
import signal
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import CliRunner
from rich.console import Console

from headgate.base.errors import InputError
from headgate.cli.group import EXIT_INTERRUPTED, main
from headgate.demo.run import KEPT_S, DemoOptions


class _Demo:
    def __init__(self) -> None:
        self.options: DemoOptions | None = None
        self.width = 0
        self.result: int | BaseException = 0

    def __call__(self, options: DemoOptions, console: Console) -> int:
        self.options, self.width = options, console.width
        if isinstance(self.result, BaseException):
            raise self.result
        return self.result


@pytest.fixture
def handlers(monkeypatch: pytest.MonkeyPatch) -> dict[int, Any]:
    found: dict[int, Any] = {}
    monkeypatch.setattr("signal.signal", found.__setitem__)
    return found


@pytest.fixture
def demo(monkeypatch: pytest.MonkeyPatch, handlers: dict[int, Any]) -> _Demo:
    assert not handlers
    played = _Demo()
    monkeypatch.setattr("headgate.demo.run.run_demo", played)
    return played


def test_defaults(demo: _Demo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert CliRunner().invoke(main, ["demo"]).exit_code == 0
    assert demo.options == DemoOptions(60.0, True, None)
    assert demo.width == 100


def test_options(demo: _Demo) -> None:
    words = ["demo", "--seconds", "15", "--no-spark", "--out", "here", "--keep"]
    assert CliRunner().invoke(main, words).exit_code == 0
    assert demo.options == DemoOptions(15.0, False, "here", keep=True)


def test_the_help_says_how_long_clients_stay() -> None:
    said = " ".join(CliRunner().invoke(main, ["demo", "--help"]).stdout.split())
    assert f"their clients run for {KEPT_S // 60} minutes more" in said


def test_a_demo_can_be_secured(demo: _Demo) -> None:
    assert CliRunner().invoke(main, ["demo", "--secured"]).exit_code == 0
    assert demo.options == DemoOptions(60.0, secured=True)


def test_a_wrong_verdict_reaches_the_shell(demo: _Demo) -> None:
    demo.result = 1
    assert CliRunner().invoke(main, ["demo"]).exit_code == 1


def test_what_is_not_allowed_is_one_sentence(demo: _Demo) -> None:
    demo.result = InputError("seconds is 1")
    result = CliRunner().invoke(main, ["demo", "--seconds", "1"])
    assert (result.exit_code, result.stderr) == (2, "Error: seconds is 1\n")


def test_a_client_that_is_missing_is_named_with_what_to_do(
    demo: _Demo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", _without_pulsar(importlib.util.find_spec))
    result = CliRunner().invoke(main, ["demo"])
    assert (result.exit_code, result.stderr) == (
        1,
        "Error: the demo needs the package pulsar-client: pip install 'headgate[demo]'\n",
    )
    assert demo.options is None


def _without_pulsar(find_spec: Callable[[str], Any]) -> Callable[[str], Any]:
    return lambda name: None if name == "pulsar" else find_spec(name)


def test_an_interruption_says_that_nothing_is_left(demo: _Demo) -> None:
    demo.result = KeyboardInterrupt()
    result = CliRunner().invoke(main, ["demo"])
    assert result.exit_code == EXIT_INTERRUPTED
    assert "the brokers and their clients have ended" in result.stdout


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_other_signals_leave_by_the_door(
    demo: _Demo, handlers: dict[int, Any], number: signal.Signals
) -> None:
    CliRunner().invoke(main, ["demo"])
    assert demo.options is not None
    with pytest.raises(SystemExit) as left:
        handlers[number](number, None)
    assert left.value.code == 128 + number
