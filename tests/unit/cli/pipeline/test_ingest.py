"""Options of ``run`` and ``stream`` reach the jobs; signals end a stream."""

from __future__ import annotations

import signal
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any, TextIO

import pytest
from click.testing import CliRunner

from headgate.cli.group import EXIT_INTERRUPTED, main
from headgate.pipeline.access_options import AccessOptions
from headgate.pipeline.lineage_options import NO_LINEAGE, LineageOptions
from headgate.pipeline.options import (
    BROKER_URL,
    METRICS_HOST,
    TELEMETRY_TOPIC,
    WEB_URL,
    SourceOptions,
    StreamOptions,
)
from tests.unit.cli.pipeline.jobs import loads

TWO_BROKERS = (
    "--broker-url pulsar://a:1 --admin-url http://a:2 --broker-url pulsar://b:1 "
    "--admin-url http://b:2 --out t --topic persistent://x/y/z"
)


def test_run_with_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[SourceOptions] = []
    loads(monkeypatch, "ingest", run_once=lambda source, _err, **_: found.append(source))
    result = CliRunner().invoke(main, ["pipeline", "run", "--out", "t"])
    assert (result.exit_code, result.stdout) == (0, "")
    assert found == [SourceOptions("t", (BROKER_URL,), (WEB_URL,), TELEMETRY_TOPIC)]


def test_run_with_two_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[SourceOptions] = []
    loads(monkeypatch, "ingest", run_once=lambda source, _err, **_: found.append(source))
    assert CliRunner().invoke(main, ["pipeline", "run", *TWO_BROKERS.split()]).exit_code == 0
    brokers, webs = ("pulsar://a:1", "pulsar://b:1"), ("http://a:2", "http://b:2")
    assert found == [SourceOptions("t", brokers, webs, "persistent://x/y/z")]


def test_tables_in_a_bucket_and_a_folder_for_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[SourceOptions] = []
    loads(monkeypatch, "ingest", run_once=lambda source, _err, **_: found.append(source))
    words = ["pipeline", "run", "--out", "s3://tables/a", "--work", "w"]
    assert CliRunner().invoke(main, words).exit_code == 0
    assert found == [SourceOptions("s3://tables/a", work="w")]
    refused = CliRunner().invoke(main, ["pipeline", "run", "--out", "gs://tables"])
    assert refused.exit_code == 2
    assert "s3://BUCKET/PREFIX is allowed" in refused.stderr


@pytest.mark.parametrize("command", ["run", "stream"])
def test_lost_data_ends_a_job_only_where_it_shall(
    monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    found: list[bool] = []
    loads(
        monkeypatch,
        "ingest",
        run_once=lambda source, _err, **_: found.append(source.fail_on_data_loss),
        run_stream=lambda options, _err, **_: found.append(options.source.fail_on_data_loss),
    )
    for more in ([], ["--fail-on-data-loss"]):
        words = ["pipeline", command, "--out", "t", *more]
        assert CliRunner().invoke(main, words).exit_code == 0
    assert found == [False, True]


def test_days_to_recompute(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Any] = []

    def run_once(_source: SourceOptions, _err: object, recompute_days: object) -> None:
        found.append(recompute_days)

    loads(monkeypatch, "ingest", run_once=run_once)
    words = ["pipeline", "run", "--out", "t"]
    for days in ([], ["2026-11-20"], ["2026-11-21", "2026-11-19"]):
        more = [word for day in days for word in ("--recompute", day)]
        assert CliRunner().invoke(main, [*words, *more]).exit_code == 0
    one, first, last = (date(2026, 11, day) for day in (20, 19, 21))
    assert found == [None, (one, one), (first, last)]
    refused = CliRunner().invoke(main, [*words, "--recompute", "yesterday"])
    assert refused.exit_code == 2
    said = "'--recompute': 'yesterday' is no day; use one such as 2026-11-21."
    assert said in refused.stderr


def test_a_token_comes_by_a_file_or_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found: list[SourceOptions] = []
    loads(monkeypatch, "ingest", run_once=lambda source, _err, **_: found.append(source))
    path = tmp_path / "token"
    path.write_text("s3cret")
    urls = "--broker-url pulsar+ssl://a:1 --admin-url https://a:2 --out t"
    words = [
        "pipeline",
        "run",
        *urls.split(),
        "--tls-allow-insecure",
        "--tls-trust-cert-path",
        "ca",
    ]
    monkeypatch.setenv("HEADGATE_TOKEN", "other")
    for more in ([], ["--token-file", str(path)]):
        assert CliRunner().invoke(main, [*words, *more]).exit_code == 0
    by_variable, by_file = found
    assert by_variable.access.auth_params == "env:HEADGATE_TOKEN"
    assert by_file.access.auth_params == path.as_uri()
    assert (by_file.access.trust_path, by_file.access.allow_insecure) == ("ca", True)
    assert "other" not in repr(found)


def test_a_profile_has_the_urls_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found: list[SourceOptions] = []
    loads(monkeypatch, "ingest", run_once=lambda source, _err, **_: found.append(source))
    path = tmp_path / "headgate" / "profiles.toml"
    path.parent.mkdir()
    path.write_text(
        '[p]\nwebServiceUrl = "https://a:2/"\nbrokerServiceUrl = "pulsar+ssl://a:1/"\n'
        'authPlugin = "token"\nauthParams = "file:///t"\n'
    )
    path.chmod(0o600)
    environment = {"XDG_CONFIG_HOME": str(tmp_path), "HEADGATE_PROFILE": "p"}
    words = ["pipeline", "run", "--out", "t"]
    for more in ([], ["--broker-url", "pulsar://b:1", "--admin-url", "http://b:2"]):
        result = CliRunner(env=environment).invoke(main, [*words, *more])
        assert (result.exit_code, result.stderr) == (0, "")
    assert [(each.broker_urls, each.web_urls) for each in found] == [
        (("pulsar+ssl://a:1/",), ("https://a:2/",)), (("pulsar://b:1",), ("http://b:2",))
    ]  # fmt: skip
    assert found[0].access == AccessOptions("token", "file:///t")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], "Missing option '--out'"),
        (["--out", "t", "--broker-url", "http://a"], "--broker-url 'http://a': pulsar://HOST"),
        (["--out", "t", "--admin-url", "http://a", "--admin-url", "http://b"], "one of each"),
        (["--out", "t", "--scrapes", "s", "--profile", "p"], "--profile has no effect with"),
    ],
)
def test_bad_options(monkeypatch: pytest.MonkeyPatch, words: list[str], text: str) -> None:
    asked = loads(monkeypatch, "ingest")
    result = CliRunner().invoke(main, ["pipeline", "run", *words])
    assert result.exit_code == 2
    assert text in result.stderr
    assert asked == []


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ("--trigger 1.5", {"trigger_s": 1.5}),
        ("--metrics-port 0", {"metrics_port": 0}),
        (
            "--metrics-port 9101 --metrics-host 0.0.0.0",
            {"metrics_port": 9101, "metrics_host": "0.0.0.0"},
        ),
        ("", {"metrics_host": METRICS_HOST}),
    ],
)
def test_stream_options(
    monkeypatch: pytest.MonkeyPatch, words: str, options: dict[str, Any]
) -> None:
    found: list[StreamOptions] = []

    def run_stream(
        options: StreamOptions, _err: TextIO, *, should_stop: Callable[[], bool]
    ) -> None:
        assert not should_stop()
        found.append(options)

    assert _stream(monkeypatch, run_stream, *words.split()) == 0
    assert found == [StreamOptions(SourceOptions("t"), **options)]


def test_a_host_for_metrics_that_nobody_serves_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = loads(monkeypatch, "ingest")
    words = ["pipeline", "stream", "--out", "t", "--metrics-host", "0.0.0.0"]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 2
    assert "--metrics-host has no effect without --metrics-port." in result.stderr
    assert asked == []


@pytest.mark.parametrize(
    ("trigger", "said"),
    [
        ("fast", "'--trigger': 'fast' is no number of seconds; use one such as 5 or 0.5."),
        ("0.05", "--trigger 0.05: seconds from 0.1 on are allowed, such as 5"),
        ("nan", "--trigger nan: seconds from 0.1 on are allowed, such as 5"),
    ],
)
def test_a_trigger_that_cannot_be_is_reported_as_it_was_typed(
    monkeypatch: pytest.MonkeyPatch, trigger: str, said: str
) -> None:
    asked = loads(monkeypatch, "ingest")
    words = ["pipeline", "stream", "--out", "t", "--trigger", trigger]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 2
    assert said in result.stderr
    assert asked == []


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


def _stream(monkeypatch: pytest.MonkeyPatch, run_stream: Callable[..., None], *words: str) -> int:
    """The exit status of a stream that does this."""
    loads(monkeypatch, "ingest", run_stream=run_stream)
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        return CliRunner().invoke(main, ["pipeline", "stream", "--out", "t", *words]).exit_code
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def test_rows_that_are_not_as_declared_end_a_run_with_3_where_they_shall(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = ["pipeline", "run", "--out", "t"]
    for unmet, option, status in ((2, [], 0), (2, ["--fail-on-quality"], 3), (0, words[4:], 0)):
        loads(monkeypatch, "ingest", run_once=lambda *_, found=unmet, **__: found)
        assert CliRunner().invoke(main, [*words, *option]).exit_code == status


@pytest.mark.parametrize("command", ["run", "stream", "attribute"])
def test_lineage_goes_to_a_url_with_the_token_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    found: list[SourceOptions] = []

    def run(options: Any, *_: Any, **__: Any) -> list[Any]:
        found.append(options if isinstance(options, SourceOptions) else options.source)
        return []

    module = "attribute" if command == "attribute" else "ingest"
    loads(monkeypatch, module, run_once=run, run_stream=run, run_attribute=run)
    words = ["pipeline", command, "--out", "t"]
    environment = {"OPENLINEAGE_API_KEY": "s3cret"}
    for more in ([], ["--openlineage", "http://host:5000"]):
        assert CliRunner().invoke(main, [*words, *more], env=environment).exit_code == 0
    assert [source.lineage for source in found] == [
        NO_LINEAGE, LineageOptions("http://host:5000", "s3cret"),
    ]  # fmt: skip
    refused = CliRunner().invoke(main, [*words, "--openlineage", "host"])
    assert refused.exit_code == 2
    assert "--openlineage 'host': http://HOST:PORT or https://HOST is allowed" in refused.stderr
