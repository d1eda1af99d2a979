"""Options and exit status of ``alerts``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from headgate.cli.group import main
from headgate.pipeline.alerts.options import AlertOptions, Credentials
from tests.unit.cli.pipeline.jobs import loads

AM = "http://am:9093"


def alerts(*words: str, **environment: str) -> Any:
    return CliRunner().invoke(main, ["pipeline", "alerts", "--out", "t", *words], env=environment)


@pytest.mark.parametrize(("is_well", "status"), [(True, 0), (False, 1)])
def test_the_exit_status_says_whether_all_was_accepted(
    monkeypatch: pytest.MonkeyPatch, is_well: bool, status: int
) -> None:
    asked = loads(monkeypatch, "alerts", run_alerts=lambda *_: is_well)
    assert alerts("--alertmanager", AM).exit_code == status
    assert asked == ["alerts.job"]


@pytest.mark.parametrize(
    ("words", "environment", "more"),
    [
        ("", {}, {}),
        ("--kind backlog --kind quota", {}, {"kinds": ("backlog", "quota")}),
        ("--after 10m --within 2h", {}, {"after": "10m", "within": "2h"}),
        ("--label a=b=c --alerts-max 9", {}, {"labels": (("a", "b=c"),), "count": 9}),
        ("--every 60s --expires 5m", {}, {"every": "60s", "expires": "5m"}),
        ("--dry-run", {}, {"is_dry_run": True}),
        ("", {"HEADGATE_ALERTS_TOKEN": "x"}, {"credentials": Credentials(token="x")}),
        (
            "--user u",
            {"HEADGATE_ALERTS_TOKEN": "x", "HEADGATE_ALERTS_PASSWORD": "p"},
            {"credentials": Credentials(user="u", password="p")},
        ),
        ("", {"HEADGATE_ALERTS_WEBHOOK": "http://h/x", "HEADGATE_TOKEN": "x"}, {}),
    ],
)  # fmt: skip
def test_options(
    monkeypatch: pytest.MonkeyPatch,
    words: str,
    environment: dict[str, str],
    more: dict[str, Any],
) -> None:
    found: list[AlertOptions] = []
    loads(monkeypatch, "alerts", run_alerts=lambda options, *_: not found.append(options))
    result = alerts("--alertmanager", AM, *words.split(), **environment)
    assert result.exit_code == 0
    assert found == [AlertOptions("t", (AM,), **more)]


def test_the_url_of_a_webhook_may_be_a_secret(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "url"
    path.write_text("https://h/secret\n")
    assert alerts("--webhook-file", str(path), "--webhook", "http://h").exit_code == 2
    path.write_text("https://u:secret@h/\n")
    result = alerts("--webhook-file", str(path))
    assert result.exit_code == 2
    assert "secret" not in result.stderr
    found: list[AlertOptions] = []
    loads(monkeypatch, "alerts", run_alerts=lambda options, *_: not found.append(options))
    assert alerts(HEADGATE_ALERTS_WEBHOOK="https://h/secret").exit_code == 0
    assert [options.webhook for options in found] == ["https://h/secret"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", "nothing says where the alerts go"),
        ("--dry-run --label x", "'x' is not NAME=VALUE."),
        ("--dry-run --kind x", "'x' is not one of 'backlog', 'quota', 'quality', 'telemetry'"),
        ("--dry-run --after x", "--after 'x' is no duration"),
        ("--dry-run", "there is no folder t yet (--out)"),
    ],
)
def test_what_is_not_allowed(words: str, said: str) -> None:
    result = alerts(*words.split())
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr
