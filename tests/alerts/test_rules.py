"""The alert rules, played by Prometheus' own tool."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from devkit.promtool import known_promtool

from headgate.agent.series import AGENT_SERIES
from headgate.telemetry.prometheus.series.catalogue import SERIES

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
RULES = sorted((ROOT / "deploy/prometheus").glob("*.rules.yml"))
_SERIES = re.compile(r"\b(?:pulsar|headgate)_\w+")
_ALERT = re.compile(r"alert(?:name)?: (\w+)")
_GUIDE = re.compile(r"what to do: (docs/guide/\S+\.md)")


@pytest.fixture(scope="module")
def promtool() -> Path:
    found = known_promtool()
    assert found is not None, "./dev test alerts fetches promtool"
    return found


@pytest.fixture(params=RULES, ids=lambda path: path.name.removesuffix(".rules.yml"))
def rules(request: pytest.FixtureRequest) -> Path:
    """Each file of rules in turn."""
    path: Path = request.param
    return path


def cases(rules: Path) -> Path:
    """What plays them."""
    return HERE / rules.name.replace(".rules.yml", ".test.yml")


def run(promtool: Path, *arguments: str) -> str:
    done = subprocess.run(
        [str(promtool), *arguments], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_prometheus_takes_the_rules(promtool: Path, rules: Path) -> None:
    assert f"{len(_ALERT.findall(rules.read_text()))} rules found" in run(
        promtool, "check", "rules", str(rules)
    )


def test_alerts_fire_when_they_should_and_only_then(promtool: Path, rules: Path) -> None:
    assert "SUCCESS" in run(promtool, "test", "rules", str(cases(rules)))


def test_every_alert_is_played(rules: Path) -> None:
    named = set(_ALERT.findall(cases(rules).read_text()))
    others = {name for path in RULES if path != rules for name in _ALERT.findall(path.read_text())}
    assert set(_ALERT.findall(rules.read_text())) == named - others


def test_the_page_that_the_rules_name_explains_every_alert(rules: Path) -> None:
    text = rules.read_text()
    guide = _GUIDE.search(text)
    assert guide is not None
    page = (ROOT / guide[1]).read_text()
    assert [name for name in _ALERT.findall(text) if f"`{name}`" not in page] == []


def test_rules_and_cases_speak_of_series_that_a_broker_or_the_agent_gives(rules: Path) -> None:
    given = {series.name for series in (*SERIES, *AGENT_SERIES)}
    for path in (rules, cases(rules)):
        used = set(_SERIES.findall(path.read_text()))
        assert used
        assert used <= given
