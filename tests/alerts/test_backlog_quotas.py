"""The alert rules about backlog quotas, played by Prometheus' own tool."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from devkit.promtool import known_promtool

from headgate.telemetry.series import SERIES

ROOT = Path(__file__).parents[2]
RULES = ROOT / "deploy/prometheus/backlog-quotas.rules.yml"
CASES = Path(__file__).parent / "backlog-quotas.test.yml"
_SERIES = re.compile(r"\b(?:pulsar|headgate)_\w+")
_ALERT = re.compile(r"alert(?:name)?: (\w+)")


@pytest.fixture(scope="module")
def promtool() -> Path:
    found = known_promtool()
    assert found is not None, "./dev test alerts fetches promtool"
    return found


def run(promtool: Path, *arguments: str) -> str:
    done = subprocess.run(
        [str(promtool), *arguments], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_prometheus_takes_the_rules(promtool: Path) -> None:
    assert f"{len(_ALERT.findall(RULES.read_text()))} rules found" in run(
        promtool, "check", "rules", str(RULES)
    )


def test_alerts_fire_when_they_should_and_only_then(promtool: Path) -> None:
    assert "SUCCESS" in run(promtool, "test", "rules", str(CASES))


def test_every_alert_is_played() -> None:
    assert set(_ALERT.findall(RULES.read_text())) == set(_ALERT.findall(CASES.read_text()))


def test_rules_and_cases_speak_of_series_that_a_broker_gives() -> None:
    given = {series.name for series in SERIES}
    for path in (RULES, CASES):
        used = set(_SERIES.findall(path.read_text()))
        assert used
        assert used <= given
