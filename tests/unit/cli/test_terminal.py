"""Colours and line width of terminals."""

from __future__ import annotations

import pytest

from headgate.cli import terminal


@pytest.mark.parametrize(
    ("is_terminal", "no_color", "term", "colored"),
    [
        (True, "", "xterm", True),
        (True, "1", "xterm", False),
        (True, "", "dumb", False),
        (False, "", "xterm", False),
    ],
)
def test_colours(
    monkeypatch: pytest.MonkeyPatch, is_terminal: bool, no_color: str, term: str, colored: bool
) -> None:
    monkeypatch.setattr(terminal, "is_terminal", lambda: is_terminal)
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setenv("TERM", term)
    assert terminal.has_color() is colored


def test_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "77")
    assert terminal.width() == 77
    monkeypatch.delenv("COLUMNS")
    assert terminal.width() == terminal.WIDTH_PIPED


@pytest.mark.parametrize(
    ("is_terminal", "term", "can"),
    [(True, "xterm", True), (True, "dumb", False), (False, "xterm", False)],
)
def test_redrawing(
    monkeypatch: pytest.MonkeyPatch, is_terminal: bool, term: str, can: bool
) -> None:
    monkeypatch.setattr(terminal, "is_terminal", lambda: is_terminal)
    monkeypatch.setenv("TERM", term)
    assert terminal.can_redraw() is can
