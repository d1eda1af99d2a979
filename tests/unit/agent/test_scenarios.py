"""Looks as text: every file in tests/scenarios/agent is replayed and must answer the same.

``HEADGATE_REWRITE_SCENARIOS=1 pytest tests/unit/agent/test_scenarios.py`` writes the answers anew;
read the difference before you commit it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.unit.agent.scenario import AgentScenario

FILES = sorted((Path(__file__).parents[2] / "scenarios" / "agent").glob("*.txt"))


def test_there_are_scenarios() -> None:
    assert len(FILES) >= 9


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_scenario(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    answered = AgentScenario().rewrite(text)
    if os.environ.get("HEADGATE_REWRITE_SCENARIOS"):
        path.write_text(answered, encoding="utf-8")
        return
    assert answered == text
