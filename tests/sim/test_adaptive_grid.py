"""The long grid of ``./dev soak``, with one seed."""

from __future__ import annotations

import adaptive_grid
import pytest

from headgate.flow.adaptive.cycle import Law
from headgate.testing.adaptive_scenes import LOADS


def test_it_has_a_line_for_each_load_and_keeps_its_promises(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rule 5.5."""
    monkeypatch.setattr(adaptive_grid, "QUOTAS_S", [12])
    assert adaptive_grid.main(1) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + len(Law) * len(LOADS) + len(Law) + 1
    assert lines[-1] == "every promise kept"


def test_a_broken_promise_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(adaptive_grid, "LOADS", ["always too much"])
    monkeypatch.setattr(adaptive_grid, "QUOTAS_S", [2])  # no law can hold two seconds of drain
    assert adaptive_grid.main(1) == 1
    assert "BROKEN: above the quota" in capsys.readouterr().out
