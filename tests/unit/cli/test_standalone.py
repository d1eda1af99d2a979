"""What the command line says reaches the broker's start; bad words stop before it."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator

import pytest
from click.testing import CliRunner

from headgate.app.options import DATA_DIRECTORY, StandaloneOptions
from headgate.cli.group import main


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[StandaloneOptions]]:
    found: list[StandaloneOptions] = []

    def run(options: StandaloneOptions, announce: Callable[[str], None]) -> None:
        found.append(options)
        announce("ready")

    monkeypatch.setattr("headgate.app.run.run_standalone", run)
    monkeypatch.setattr("headgate.app.log_lines.start_logging", lambda _level: None)
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


@pytest.mark.parametrize(
    "words", [["--broker-port", "65536"], ["--web-port", "x"], ["--log-level", "loud"], ["extra"]]
)
def test_misunderstood_words(started: list[StandaloneOptions], words: list[str]) -> None:
    assert CliRunner().invoke(main, ["standalone", *words]).exit_code == 2
    assert started == []
