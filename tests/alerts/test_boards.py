"""Prometheus' own tool reads every expression of the boards."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from boards.selectors import variables
from devkit.promtool import known_promtool
from generate_boards import boards

BOARDS = boards()


@pytest.mark.parametrize("name", BOARDS)
def test_prometheus_reads_the_expressions(name: str, tmp_path: Path) -> None:
    promtool = known_promtool()
    assert promtool is not None, "./dev test alerts fetches promtool"
    panels = [
        each for panel in BOARDS[name]["panels"] for each in (panel, *panel.get("panels", ()))
    ]
    expressions = [target["expr"] for panel in panels for target in panel.get("targets", ())]
    rules = [
        {"record": f"board:panel:{number}", "expr": filled(expression)}
        for number, expression in enumerate(expressions)
    ]
    path = tmp_path / "rules.yml"
    # JSON is YAML.
    path.write_text(json.dumps({"groups": [{"name": name, "rules": rules}]}))
    done = subprocess.run(
        [str(promtool), "check", "rules", "--lint=none", str(path)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(rules)} rules found" in done.stdout


def filled(expression: str) -> str:
    """The expression as Grafana sends it."""
    values = {f"${each['name']}": ".*" for each in variables("up")}
    values |= {"$__rate_interval": "1m", "$top": "10"}
    for name in sorted(values, key=len, reverse=True):
        expression = expression.replace(name, values[name])
    assert "$" not in expression
    return expression
