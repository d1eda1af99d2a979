"""The command in a pipe, and what it hands to the live view."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import CliRunner, Result

from headgate.access.admin_api import AdminApi, UnreachableError
from headgate.cli.group import main
from headgate.cli.top.view import TopView
from tests.unit.cli.top.reports import answer, report

PATH = "/admin/v2/headgate/explain?count={}&timeline=true"


class Reply:
    status = 200


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths that were asked for; a broker answers."""
    found: list[str] = []

    def ask(_self: AdminApi, path: str, *, timeout_s: float) -> tuple[Any, bytes]:
        assert timeout_s > 0
        found.append(path)
        return Reply(), json.dumps(answer(report("t/n/a"))).encode()

    monkeypatch.setattr(AdminApi, "ask", ask)
    return found


def top(*words: str) -> Result:
    return CliRunner(env={"COLUMNS": "100"}).invoke(main, ["top", *words])


def test_a_pipe_gets_the_table_once(asked: list[str]) -> None:
    result = top("--rows", "7")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.output.startswith("headgate top  localhost:8080")
    assert "Consumer             t/n/a  s" in result.output
    assert "\x1b" not in result.output
    assert asked == [PATH.format(7)]


def test_a_terminal_gets_the_live_view(asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, float]] = []

    def watch(view: TopView, fetch: Callable[[str], Any], every_s: float) -> None:
        fetch("/other?x")
        seen.append((view.path, every_s))

    monkeypatch.setattr("headgate.cli.terminal.can_redraw", lambda: True)
    monkeypatch.setattr("headgate.cli.top.command.watch", watch)
    assert top("--interval", "0.5").exit_code == 0
    assert seen == [(PATH.format(100), 0.5)]
    assert asked == [PATH.format(100), "/other?x"]


def test_without_a_broker_it_does_not_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(*_: object, **__: object) -> None:
        raise UnreachableError("http://b refuses the connection")

    monkeypatch.setattr(AdminApi, "ask", ask)
    result = top()
    assert result.exit_code == 1
    assert "http://b refuses the connection" in result.stderr


def test_a_pulsar_is_watched_by_an_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    class Missing:
        status = 404

    monkeypatch.setattr(AdminApi, "ask", lambda *_, **__: (Missing(), b'{"reason": "HTTP 404"}'))
    result = top()
    assert result.exit_code == 1
    assert "is no Headgate broker" in result.stderr
    assert "headgate agent watches an Apache Pulsar cluster and answers for it" in result.stderr


@pytest.mark.parametrize("words", [["--interval", "0"], ["--rows", "0"], ["topic"]])
def test_what_cannot_be_is_not_asked(asked: list[str], words: list[str]) -> None:
    assert top(*words).exit_code == 2
    assert asked == []
