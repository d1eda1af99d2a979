"""Colours and line width of terminals."""

from __future__ import annotations

import io
import sys

import click
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


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


def test_names_control_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A subscription may be called so; colours, line ends and other scripts stay."""
    screen, other, pipe = Screen(), Screen(), io.StringIO()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setattr(sys, "stderr", other)
    terminal.guard()
    terminal.guard()
    click.echo("a\x1b]52;c;cm0=\x07 \x9b31m \u202egnp \x9d0;t\x9c \xe9")
    click.echo(click.style("red", "red"), err=True)
    click.echo("\tb\r\n\x1b[2K", nl=False)
    assert screen.getvalue() == (
        "a\\x1b]52;c;cm0=\\x07 \\x9b31m \\u202egnp \\x9d0;t\\x9c \xe9\n\tb\r\n\x1b[2K"
    )
    assert other.getvalue() == "\x1b[31mred\x1b[0m\n"
    monkeypatch.setattr(sys, "stdout", pipe)
    terminal.guard()
    click.echo("\x9b")
    assert pipe.getvalue() == "\x9b\n", "a program gets names as they are"
