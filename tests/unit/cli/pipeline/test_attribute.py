"""Options and exit status of ``attribute``."""

from __future__ import annotations

from typing import Any, TextIO

import pytest
from click.testing import CliRunner

from headgate.cli.group import EXIT_INTERRUPTED, main
from headgate.cli.pipeline.common import EXIT_FOUND
from headgate.cli.terminal import WIDTH_PIPED
from headgate.pipeline.options import AttributeOptions, SourceOptions
from tests.unit.cli.pipeline.jobs import loads

ROWS = [
    {"verdict": "CONSUMER", "confidence": 0.9},
    {"verdict": "THROTTLED_TOPIC", "confidence": 0.4},
    {"verdict": "NONE", "confidence": 1.0},
]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    found: list[Any] = []

    def run_attribute(options: AttributeOptions, out: TextIO, err: TextIO) -> list[dict[str, Any]]:
        found.append(options)
        out.write("rows\n")
        err.write("progress\n")
        return ROWS

    loads(monkeypatch, "attribute", run_attribute=run_attribute)
    monkeypatch.delenv("COLUMNS", raising=False)
    return found


def attribute(*words: str) -> Any:
    return CliRunner().invoke(main, ["pipeline", "attribute", "--out", "t", *words])


def test_defaults(asked: list[Any]) -> None:
    result = attribute()
    assert (result.exit_code, result.stdout, result.stderr) == (0, "rows\n", "progress\n")
    assert asked == [AttributeOptions(SourceOptions("t"), None, None, "table", WIDTH_PIPED)]


def test_options(asked: list[Any]) -> None:
    assert (
        attribute(*["--since", "2h", "--until", "1h", "--format", "csv", "--no-read"]).exit_code
        == 0
    )
    source = SourceOptions("t")
    assert asked == [AttributeOptions(source, "2h", "1h", "csv", WIDTH_PIPED, reads=False)]


def test_producers_are_asked_for(asked: list[Any]) -> None:
    assert attribute("--producers", "--no-read").exit_code == 0
    source = SourceOptions("t")
    wanted = AttributeOptions(source, width=WIDTH_PIPED, reads=False, is_about_producers=True)
    assert asked == [wanted]


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ("--fail-on CONSUMER", EXIT_FOUND),
        ("--fail-on consumer", EXIT_FOUND),
        ("--fail-on NO_CONSUMER", 0),
        # A verdict that nobody is sure of does not wake anybody.
        ("--fail-on THROTTLED", 0),
        ("--fail-on THROTTLED --fail-confidence 0.4", EXIT_FOUND),
        ("--fail-on THROTTLED_TOPIC --fail-confidence 0.4", EXIT_FOUND),
        ("--fail-on BROKER --fail-on ANY", EXIT_FOUND),
        ("--fail-on ANY --fail-confidence 0.95", 0),
    ],
)
def test_a_script_learns_what_was_found(asked: list[Any], words: str, status: int) -> None:
    result = attribute(*words.split())
    assert (result.exit_code, result.stdout) == (status, "rows\n")
    assert ("--fail-on: " in result.stderr) == (status == EXIT_FOUND)


def test_where_nothing_is_known_a_script_does_not_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    loads(monkeypatch, "attribute", run_attribute=lambda *_: [])
    assert attribute().exit_code == 0
    result = attribute("--fail-on", "ANY")
    assert result.exit_code == 2
    assert "no subscription has telemetry in this range" in result.stderr


def test_what_was_found_is_said(asked: list[Any]) -> None:
    result = attribute("--fail-on", "ANY", "--fail-confidence", "0")
    assert result.stderr.endswith("--fail-on: 2 of 3 judged CONSUMER, THROTTLED_TOPIC.\n")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("--format xml", "'xml' is not one of 'table', 'json', 'csv'"),
        ("--fail-on NONE", "'NONE' is no verdict"),
        ("--fail-on consumr", "'consumr' is no verdict; did you mean CONSUMER? ANY, THROTTLED, "),
        ("--producers --fail-on ANY", "--fail-on is about subscriptions, --producers about"),
        ("--fail-confidence 0.9", "--fail-confidence has no effect without --fail-on."),
        (
            "--no-read --broker-url pulsar://a:1",
            "--broker-url has no effect with --no-read, which asks no broker.",
        ),
        ("--no-read --topic x --work w", "--work and --topic have no effect with --no-read"),
        (
            "--scrapes s --admin-url http://a:1 --broker-url pulsar://a:1",
            "--broker-url and --admin-url have no effect with --scrapes, which asks no broker.",
        ),
        ("--scrapes s --no-read", "--scrapes and --no-read exclude each other"),
        ("--files f --topic t", "--topic has no effect with --files, which asks no broker."),
        ("--files f --scrapes s", "--scrapes and --files exclude each other"),
        ("--fail-confidence 2", "is not in the range 0<=x<=1"),
    ],
)
def test_bad_options(asked: list[Any], words: str, text: str) -> None:
    result = attribute(*words.split())
    assert result.exit_code == 2
    assert text in result.stderr
    assert asked == []


def test_an_interrupted_attribute_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def run_attribute(*_: object) -> None:
        raise KeyboardInterrupt

    loads(monkeypatch, "attribute", run_attribute=run_attribute)
    result = attribute()
    assert (result.exit_code, result.stdout) == (EXIT_INTERRUPTED, "")
    assert result.stderr == "Interrupted; the next run continues from here.\n"
