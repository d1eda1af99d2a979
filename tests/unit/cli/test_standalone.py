"""Options reach the broker's start; a wrong command line does not start it."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator

import pytest
from click.testing import CliRunner

from headgate.app.options import DATA_DIRECTORY, StandaloneOptions
from headgate.cli.group import main


@pytest.fixture
def logs() -> list[tuple[str | None, ...]]:
    """Level and file of each start of logging."""
    return []


@pytest.fixture
def started(
    monkeypatch: pytest.MonkeyPatch, logs: list[tuple[str | None, ...]]
) -> Iterator[list[StandaloneOptions]]:
    found: list[StandaloneOptions] = []

    def run(options: StandaloneOptions, announce: Callable[[str], None]) -> None:
        found.append(options)
        announce("ready")

    monkeypatch.setattr("headgate.app.run.run_standalone", run)
    monkeypatch.setattr("headgate.app.log_lines.start_logging", lambda *words: logs.append(words))
    yield found
    gc.enable()


def test_defaults(started: list[StandaloneOptions]) -> None:
    result = CliRunner().invoke(main, ["standalone"])
    assert (result.exit_code, result.stdout) == (0, "ready\n")
    assert started == [StandaloneOptions(DATA_DIRECTORY, None, [])]


def test_ports_are_settings_that_win(started: list[StandaloneOptions]) -> None:
    words = "--config b.conf --data-dir d --broker-port 1 --web-port 0 --set a=1 --set b=2"
    assert CliRunner().invoke(main, ["standalone", *words.split()]).exit_code == 0
    assignments = ["a=1", "b=2", "brokerServicePort=1", "webServicePort=0"]
    assert started == [StandaloneOptions("d", "b.conf", assignments)]


def test_where_the_log_goes(
    started: list[StandaloneOptions], logs: list[tuple[str | None, ...]]
) -> None:
    for words in ([], ["--log-level", "debug", "--log-file", "b.log", "--audit-log", "a.log"]):
        assert CliRunner().invoke(main, ["standalone", *words]).exit_code == 0
    assert len(started) == 2
    assert logs == [("info", None, None), ("debug", "b.log", "a.log")]


@pytest.mark.parametrize(
    "words", [["--broker-port", "65536"], ["--web-port", "x"], ["--log-level", "loud"], ["extra"]]
)
def test_misunderstood_words(started: list[StandaloneOptions], words: list[str]) -> None:
    assert CliRunner().invoke(main, ["standalone", *words]).exit_code == 2
    assert started == []
