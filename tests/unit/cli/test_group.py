"""Commands load when they are called, and failures are one sentence."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import click
import pytest
from click.testing import CliRunner

from headgate.base.errors import CorruptionError, HeadgateError, InputError, InvariantError
from headgate.cli.group import EXIT_INTERRUPTED, main

HEAVY = ("pyspark", "pandas", "pyarrow", "numpy", "deltalake", "pulsar", "rich")
BROKER = ("headgate.broker", "headgate.engine", "uvicorn", "starlette", "uvloop", "asyncio")


def _loaded(code: str, names: tuple[str, ...]) -> list[str]:
    """Which of ``names`` a fresh interpreter has loaded after ``code``."""
    program = f"import sys\n{code}\nprint(*[n for n in {names!r} if n in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, text=True, timeout=60
    )
    return done.stdout.splitlines()[-1].split()


def test_help_loads_no_broker_and_no_spark() -> None:
    code = "from headgate.cli import main\nmain(['--help'], standalone_mode=False)"
    assert _loaded(code, HEAVY + BROKER) == []


def test_standalone_loads_no_spark() -> None:
    code = "import headgate.cli.standalone, headgate.app.run"
    assert _loaded(code, HEAVY) == []
    assert _loaded(code, ("uvicorn",)) == ["uvicorn"]


def _options(group: click.Group, path: str) -> Iterator[tuple[str, click.Option]]:
    """Every option of every command below ``group`` whose names are Headgate's own."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        for option in command.params:
            if isinstance(option, click.Option):
                yield f"{path} {name}", option
        if isinstance(command, click.Group) and name != "admin":  # verbs are pulsar-admin's
            yield from _options(command, f"{path} {name}")


def test_one_option_has_one_name_one_meaning_and_one_default() -> None:
    values: dict[str, set[Any]] = {}
    names: dict[str, set[str]] = {}
    defaults: dict[str, set[Any]] = {}
    for path, option in _options(main, "headgate"):
        name, value = option.opts[0], None if option.is_flag else option.metavar
        values.setdefault(name, set()).add(value)
        if value is not None and "URL" in value:
            names.setdefault(path, set()).add(name)
        if option.show_default and not option.required:
            plain = option.default[0] if option.multiple else option.default
            defaults.setdefault(name, set()).add(plain)
    assert {name: found for name, found in values.items() if len(found) > 1} == {}
    services = {"--openlineage", "--alertmanager", "--webhook", "--report-url"}
    assert {name for found in names.values() for name in found} == {
        "--admin-url", "--broker-url", *services
    }  # fmt: skip
    assert {name: found for name, found in defaults.items() if len(found) > 1} == {}


def test_every_command_of_the_table_is_there_and_has_help() -> None:
    runner = CliRunner()
    listed = runner.invoke(main, ["--help"]).output
    context = click.Context(main)
    for name in main.list_commands(context):
        assert f"  {name} " in listed
        command = main.get_command(context, name)
        assert command is not None
        assert command.name == name
        assert runner.invoke(main, [name, "--help"]).exit_code == 0


def test_without_a_command_help_is_shown() -> None:
    assert "standalone" in CliRunner().invoke(main, []).output


def test_an_unknown_command_is_refused() -> None:
    result = CliRunner().invoke(main, ["xyzzy"])
    assert result.exit_code == 2
    assert "No such command 'xyzzy'" in result.output


def test_a_synonym_of_a_command_names_the_command() -> None:
    result = CliRunner().invoke(main, ["serve"])
    assert result.exit_code == 2
    assert "No such command 'serve'; did you mean standalone?" in result.output


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["standalon"], "'standalon'; did you mean standalone?"),
        (["pipeline", "atribute"], "'atribute'; did you mean attribute?"),
        (["admin", "topcs"], "'topcs'; did you mean topics?"),
        (["admin", "topics", "lst"], "'lst'; did you mean list?"),
    ],
)
def test_a_mistyped_command_is_answered_with_the_one_meant(words: list[str], meant: str) -> None:
    result = CliRunner().invoke(main, words)
    assert result.exit_code == (1 if words[0] == "admin" else 2)
    assert f"No such command {meant}\n" in result.output


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (HeadgateError("port 6650 is busy"), 1, "Error: port 6650 is busy\n"),
        (InputError("count is 0"), 2, "Error: count is 0\n"),
        (CorruptionError("segment 3"), 1, "Error: stored data is damaged: segment 3\n"),
        (KeyboardInterrupt(), EXIT_INTERRUPTED, ""),
    ],
)
def test_expected_failures_have_no_trace(
    monkeypatch: pytest.MonkeyPatch, error: BaseException, status: int, text: str
) -> None:
    result = CliRunner().invoke(_failing(monkeypatch, error), ["version"])
    assert (result.exit_code, result.stdout, result.stderr) == (status, "", text)


def test_a_bug_keeps_its_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    result = CliRunner().invoke(_failing(monkeypatch, InvariantError("two owners")), ["version"])
    assert isinstance(result.exception, InvariantError)


def _failing(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> click.Group:
    @click.command("version")
    def command() -> None:
        raise error

    monkeypatch.setattr("headgate.cli.version.version_command", command)
    return main
