"""What the command line says reaches the jobs; Spark that is missing is named."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TextIO

import pytest
from click.testing import CliRunner

from headgate.cli.group import EXIT_INTERRUPTED, main
from headgate.cli.terminal import WIDTH_PIPED
from headgate.pipeline.options import (
    BROKER_URL,
    TELEMETRY_TOPIC,
    WEB_URL,
    AttributeOptions,
    SourceOptions,
    StreamOptions,
)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    found: list[Any] = []

    def run_attribute(options: AttributeOptions, out: TextIO, err: TextIO) -> int:
        found.append(options)
        out.write("rows\n")
        err.write("progress\n")
        return 1

    def run_stream(
        options: StreamOptions, _err: TextIO, *, should_stop: Callable[[], bool]
    ) -> None:
        assert not should_stop()
        found.append(options)

    jobs = SimpleNamespace(run_attribute=run_attribute, run_stream=run_stream)
    monkeypatch.setattr("headgate.cli.pipeline._jobs", lambda: jobs)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    monkeypatch.delenv("COLUMNS", raising=False)
    return found


def test_attribute_defaults(asked: list[Any]) -> None:
    result = CliRunner().invoke(main, ["pipeline", "attribute", "--out", "t"])
    assert (result.exit_code, result.stdout, result.stderr) == (0, "rows\n", "progress\n")
    source = SourceOptions("t", (BROKER_URL,), (WEB_URL,), TELEMETRY_TOPIC)
    assert asked == [AttributeOptions(source, None, None, "table", WIDTH_PIPED)]


def test_attribute_options(asked: list[Any]) -> None:
    words = (
        "--broker-url pulsar://a:1 --web-url http://a:2 --broker-url pulsar://b:1 "
        "--web-url http://b:2 --out t --topic persistent://x/y/z --since 2h --until 1h "
        "--format json"
    )
    assert CliRunner().invoke(main, ["pipeline", "attribute", *words.split()]).exit_code == 0
    source = SourceOptions(
        "t", ("pulsar://a:1", "pulsar://b:1"), ("http://a:2", "http://b:2"), "persistent://x/y/z"
    )
    assert asked == [AttributeOptions(source, "2h", "1h", "json", WIDTH_PIPED)]


def test_a_token_comes_by_a_file_or_the_environment(
    asked: list[Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "token"
    path.write_text("s3cret")
    urls = "--broker-url pulsar+ssl://a:1 --web-url https://a:2 --out t"
    words = ["pipeline", "stream", *urls.split(), "--tls-insecure", "--tls-trust-certs", str(path)]
    monkeypatch.setenv("HEADGATE_TOKEN", "other")
    for more in ([], ["--token-file", str(path)]):
        assert CliRunner().invoke(main, [*words, *more]).exit_code == 0
    by_variable, by_file = (options.source for options in asked)
    assert (by_variable.token, by_variable.token_path) == ("other", None)
    assert (by_file.token, by_file.token_path) == (None, str(path))
    assert (by_file.trust_path, by_file.allow_insecure) == (str(path), True)
    assert "other" not in repr(asked)


def test_stream_options(asked: list[Any]) -> None:
    result = CliRunner().invoke(main, ["pipeline", "stream", "--out", "t", "--trigger", "1.5"])
    assert result.exit_code == 0
    assert asked == [StreamOptions(SourceOptions("t"), 1.5)]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_stream_after_its_batch(
    monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    def run_stream(
        options: StreamOptions, _err: TextIO, *, should_stop: Callable[[], bool]
    ) -> None:
        said.append(should_stop())
        signal.raise_signal(number)
        said.append(should_stop())
        said.append(signal.getsignal(number) is signal.SIG_DFL)

    said: list[bool] = []
    assert _stream(monkeypatch, run_stream) == 0
    assert said == [False, True, True]


def test_a_signal_before_the_first_batch_ends_it_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def run_stream(
        options: StreamOptions, _err: TextIO, *, should_stop: Callable[[], bool]
    ) -> None:
        signal.raise_signal(signal.SIGINT)
        pytest.fail("Spark goes on starting")

    assert _stream(monkeypatch, run_stream) == EXIT_INTERRUPTED


def test_an_interrupted_attribute_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def run_attribute(*_: object) -> None:
        raise KeyboardInterrupt

    jobs = SimpleNamespace(run_attribute=run_attribute)
    monkeypatch.setattr("headgate.cli.pipeline._jobs", lambda: jobs)
    result = CliRunner().invoke(main, ["pipeline", "attribute", "--out", "t"])
    assert (result.exit_code, result.stdout) == (EXIT_INTERRUPTED, "")
    assert result.stderr == "Interrupted; the next run goes on from here.\n"


def test_summaries_are_whole_sentences() -> None:
    listed = CliRunner().invoke(main, ["pipeline", "--help"]).output.partition("Commands:")[2]
    rows = listed.strip().splitlines()
    assert [row.split()[0] for row in rows] == ["attribute", "stream"]
    assert all(row.endswith(".") and not row.endswith("...") for row in rows)


def _stream(monkeypatch: pytest.MonkeyPatch, run_stream: Callable[..., None]) -> int:
    """The exit status of a stream that does this."""
    monkeypatch.setattr(
        "headgate.cli.pipeline._jobs", lambda: SimpleNamespace(run_stream=run_stream)
    )
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        return CliRunner().invoke(main, ["pipeline", "stream", "--out", "t"]).exit_code
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@pytest.mark.parametrize(
    ("words", "status", "text"),
    [
        ([], 2, "Missing option '--out'"),
        (["--out", "t", "--format", "xml"], 2, "'xml' is not one of 'table', 'json'"),
        (["--out", "t", "--broker-url", "http://a"], 2, "Invalid URL 'http://a': pulsar://host"),
        (["--out", "t", "--web-url", "http://a", "--web-url", "http://b"], 2, "one of each"),
    ],
)
def test_bad_options(asked: list[Any], words: list[str], status: int, text: str) -> None:
    result = CliRunner().invoke(main, ["pipeline", "attribute", *words])
    assert result.exit_code == status
    assert text in result.stderr
    assert asked == []


def test_missing_spark_is_named_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "headgate.pipeline.jobs", raising=False)
    monkeypatch.delattr("headgate.pipeline.jobs", raising=False)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    result = CliRunner().invoke(main, ["pipeline", "attribute", "--out", "t"])
    assert result.exit_code == 1
    assert result.stderr == (
        "Error: the pipeline needs Spark, and the package 'pyspark' is not installed: "
        "pip install 'headgate[spark]', and have Java 17 or newer\n"
    )
