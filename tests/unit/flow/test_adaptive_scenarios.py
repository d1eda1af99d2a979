"""Adaptive throttling as text: every file in tests/scenarios/adaptive is replayed.

``HEADGATE_REWRITE_SCENARIOS=1 pytest tests/unit/flow/test_adaptive_scenarios.py`` writes them
anew; read the difference before you commit it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.unit.flow.adaptive_scenario import AdaptiveScenario

FILES = sorted((Path(__file__).parents[2] / "scenarios" / "adaptive").glob("*.txt"))


def test_there_are_scenarios() -> None:
    assert len(FILES) >= 4


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_scenario(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    answered = AdaptiveScenario().rewrite(text)
    if os.environ.get("HEADGATE_REWRITE_SCENARIOS"):
        path.write_text(answered, encoding="utf-8")
        return
    assert answered == text
