"""``--watch``: answers again and again."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import CliRunner, Result

from headgate.access.admin_api import AdminApi, UnreachableError
from headgate.cli.explain.command import EXPLAIN_PATH
from headgate.cli.explain.errors import ExplainError, NotHeadgateError
from headgate.cli.explain.printing import first_answer
from headgate.cli.group import main
from headgate.cli.live.screen import Freshness
from tests.unit.cli.explain.empty_report import EMPTY


class Reply:
    status = 200


class Broker:
    """Stands where the broker stands."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.is_away = False

    def ask(self, path: str, *, timeout_s: float) -> tuple[Any, bytes]:
        assert timeout_s > 0
        self.asked.append(path)
        if self.is_away:
            raise UnreachableError("http://127.0.0.1:8080 refuses the connection")
        return Reply(), json.dumps(EMPTY).encode()


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    found = Broker()

    def ask(_self: AdminApi, path: str, **options: Any) -> tuple[Any, bytes]:
        return found.ask(path, **options)

    monkeypatch.setattr(AdminApi, "ask", ask)
    return found


def explain(*words: str) -> Result:
    return CliRunner(env={"COLUMNS": "100"}).invoke(main, ["explain", *words])


def watched(
    monkeypatch: pytest.MonkeyPatch, broker: Broker, *words: str
) -> tuple[Result, list[float]]:
    """Output of ``--watch`` into a pipe, whose third wait ends it, and the waits."""
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        # The broker is away for one request.
        broker.is_away = len(waits) == 1
        if len(waits) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("time.sleep", sleep)
    return explain(*words), waits


@pytest.mark.parametrize(
    ("words", "every_s", "path"),
    [
        (["--watch"], 2, "?count=10"),
        (["--watch", "5"], 5, "?count=10"),
        (["--watch=0.5", "orders"], 0.5, "/persistent/public/default/orders"),
        (["orders", "--watch"], 2, "/persistent/public/default/orders"),
        (["--watch", "orders"], 2, "/persistent/public/default/orders"),
        (["--watch", "--json"], 2, "?count=10"),
    ],
)
def test_watching_in_a_pipe_prints_one_answer_after_the_other(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, words: list[str], every_s: float, path: str
) -> None:
    result, waits = watched(monkeypatch, broker, *words, "--json")
    assert result.exit_code == 130
    assert [json.loads(line) for line in result.stdout.splitlines()] == [EMPTY] * 2
    assert result.stderr.count("refuses the connection") == 1
    assert waits == [every_s] * 3
    assert broker.asked == [EXPLAIN_PATH + path] * 3


def test_watching_as_text(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    result, _ = watched(monkeypatch, broker, "--watch")
    text = "localhost:8080, 2026-11-21 18:18:35 UTC: 0 subscriptions, no backlog.\n\n"
    assert result.stdout == 2 * text


def test_watching_on_a_terminal(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, float, str]] = []

    def watch(view: Any, fetch: Callable[[str], Any], every_s: float) -> None:
        view.on_answer(fetch(view.path))
        line = view.lines(100, 2, Freshness(0, "", every_s))[0].plain
        seen.append((view.path, every_s, line))

    monkeypatch.setattr("headgate.cli.terminal.can_redraw", lambda: True)
    monkeypatch.setattr("headgate.cli.live.watch.watch", watch)
    assert explain("--watch", "3").exit_code == 0
    line = "localhost:8080, 2026-11-21 18:18:35 UTC: 0 subscriptions, no backlog."
    assert seen == [(f"{EXPLAIN_PATH}?count=10", 3.0, line)]


@pytest.mark.parametrize("words", [["--watch=0"], ["--watch=nan"], ["--watch", "x", "orders"]])
def test_a_pace_that_cannot_be(broker: Broker, words: list[str]) -> None:
    result = explain(*words)
    assert result.exit_code == 2
    assert "--watch" in result.stderr
    assert broker.asked == []


@pytest.mark.parametrize("option", ["--record", "--replay"])
def test_looks_at_a_pulsar_are_not_watched(broker: Broker, option: str) -> None:
    result = explain("--watch", "1", option, "file")
    assert result.exit_code == 2
    assert "--watch goes with neither --record nor --replay" in result.stderr
    assert broker.asked == []


def test_a_pulsar_is_watched_by_an_agent() -> None:
    def fetch(_path: str) -> dict[str, Any]:
        raise NotHeadgateError("http://b is no Headgate broker", 1)

    with pytest.raises(ExplainError, match="headgate agent watches an Apache Pulsar") as raised:
        first_answer(fetch, "/path")
    assert raised.value.exit_code == 1
